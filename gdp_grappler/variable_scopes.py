"""Records which variables a program made under `tf.device`.

The device of a variable does not tell whether the program requested it. So this
module records the request when a variable is made, even if the option is off.
`import tensorflow` loads this module in every program, so it imports little.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from typing import Any, Iterator

_VARIABLES = ('tensorflow.python.ops.resource_variable_ops',
              'BaseResourceVariable')
# Optimizers make a slot in this scope of its weight's device. That scope is not
# a request of the program.
_STRATEGIES = ('tensorflow.python.distribute.distribute_lib',
               '_DefaultDistributionExtended')
_MARK = '_gdp_wrapped'
_SCOPE = '_gdp_scope'
# TensorFlow completes a scope that names only a host by this device.
_ANY = 'device:CPU:0'
_LOCALHOST = '/job:localhost/'


class _Local(threading.local):
  is_muted = False


_local = _Local()


def watch() -> None:
  """Records the scopes of all variables that are made from now on."""
  import wrapt
  for (module, name), wrap in ((_VARIABLES, _wrap_variables),
                               (_STRATEGIES, _wrap_strategies)):
    wrapt.register_post_import_hook(functools.partial(wrap, name), module)


def device(variable: Any) -> str:
  """Returns the full name of the device that the program requested; or ''.

  A scope that names only another host is no request for a device.
  """
  scope = str(getattr(variable, _SCOPE, ''))
  if scope.endswith(_ANY) and not scope.startswith(_LOCALHOST):
    return ''
  return scope


@contextlib.contextmanager
def unnoted() -> Iterator[None]:
  """Records no scopes of variables that this thread makes in the context."""
  outer, _local.is_muted = _local.is_muted, True
  try:
    yield
  finally:
    _local.is_muted = outer


def _wrap_variables(name: str, module: Any) -> None:
  cls = getattr(module, name)
  if _MARK in vars(cls):
    return
  stock = cls.__init__
  from tensorflow.python.eager import context

  @functools.wraps(stock)
  def init(self: Any, *args: Any, **kwargs: Any) -> None:
    stock(self, *args, **kwargs)
    scope = '' if _local.is_muted else context.context().device_name
    if scope:
      setattr(self, _SCOPE, scope)

  cls.__init__ = init
  setattr(cls, _MARK, True)


def _wrap_strategies(name: str, module: Any) -> None:
  cls = getattr(module, name)
  if _MARK in vars(cls):
    return
  stock = cls.colocate_vars_with

  @functools.wraps(stock)
  @contextlib.contextmanager
  def colocate_vars_with(self: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
    with stock(self, *args, **kwargs) as scope, unnoted():
      yield scope

  cls.colocate_vars_with = colocate_vars_with
  setattr(cls, _MARK, True)
