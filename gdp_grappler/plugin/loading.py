"""Detects graphs that TensorFlow runs while it loads a SavedModel of v1.

These graphs restore variables and initialize tables, and run once. Placing such
a graph would take longer than its run, and users would not understand a line
about the graph. So the pass leaves these graphs as they are.
"""

from __future__ import annotations

import contextvars
from typing import Any

from gdp_grappler import method_wrapping

_MODULE, _CLASS = ('tensorflow.python.saved_model.load_v1_in_v2',
                   '_EagerSavedModelLoader')

_is_loading = contextvars.ContextVar('is_loading', default=False)


def is_current() -> bool:
  """Whether this thread is loading a SavedModel of v1."""
  return _is_loading.get()


def install() -> None:
  """Wraps the loader of v1 SavedModels when TensorFlow imports it."""
  import wrapt
  wrapt.register_post_import_hook(_wrap, _MODULE)


def _wrap(module: Any) -> None:
  cls = getattr(module, _CLASS, None)
  if cls is not None:
    method_wrapping.wrap(cls, 'load', _load)


def _load(stock: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
  token = _is_loading.set(True)
  try:
    return stock(self, *args, **kwargs)
  finally:
    _is_loading.reset(token)
