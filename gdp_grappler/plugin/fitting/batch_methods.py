"""Whether a step of Keras was called by `train_on_batch` or a similar method.

Keras runs the same function for `fit` and for `train_on_batch`. Lines about the
function name the method that the user called.
"""

from __future__ import annotations

import contextvars
from typing import Any

from gdp_grappler import method_wrapping

# By the method that runs many batches: the method that runs one.
_METHODS = {
    'fit': 'train_on_batch', 'evaluate': 'test_on_batch',
    'predict': 'predict_on_batch'
}

# The method that runs now; '' for none.
_method = contextvars.ContextVar('method', default='')


def watch(cls: Any) -> None:
  """Records the calls of the methods that run one batch.

  Args:
    cls: A class of Keras 3 or tf_keras that has these methods.
  """
  for method in _METHODS.values():
    _wrap(cls, method)


def named(what: str) -> str:
  """Returns the name of a call: 'train_on_batch of "m"' or 'fit of "m"'.

  Args:
    what: Name of the call if the user called `fit`, `evaluate` or `predict`.
  """
  method = _method.get()
  if not method:  # `fit` asks in each step.
    return what
  many, space, rest = what.partition(' ')
  return f'{method}{space}{rest}' if _METHODS.get(many) == method else what


def _wrap(cls: Any, method: str) -> None:

  def call(stock: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    token = _method.set(method)
    try:
      return stock(self, *args, **kwargs)
    finally:
      _method.reset(token)

  method_wrapping.wrap(cls, method, call)
