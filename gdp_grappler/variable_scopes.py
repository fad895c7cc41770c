"""Records where variables were made: under which `tf.device`, in which layer.

The device of a variable does not tell whether the program requested it, and the
name of a variable of Keras 3 may lack the layer. So this module records both
when a variable is made, even if the option is off.
`import tensorflow` loads this module in every program, so it imports little.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from typing import Any, Iterator

from gdp_grappler import method_wrapping

_VARIABLES = ('tensorflow.python.ops.resource_variable_ops',
              'BaseResourceVariable')
# This class makes the device scope in which optimizers create a slot. The scope
# is not a request of the program.
_STRATEGIES = ('tensorflow.python.distribute.distribute_lib',
               '_DefaultDistributionExtended')
# This optimizer computes learning rates in the device scope of each weight.
_LEGACY = 'tf_keras.src.optimizers.legacy.optimizer_v2', 'OptimizerV2'
# Attribute of ops in a scope that is not a request of the program.
UNASKED = '_gdp_unasked'
_KERAS = 'keras.src.backend.tensorflow.core', 'Variable'
_SCOPE = '_gdp_scope'
_PATH = '_gdp_path'
# TensorFlow completes a scope that names only a host by this device.
_ANY = 'device:CPU:0'
_LOCALHOST = '/job:localhost/'


class _Local(threading.local):
  is_muted = False


_local = _Local()


def watch() -> None:
  """Records the scopes and paths of variables that are made from now on."""
  import wrapt
  for (module, name), wrap in ((_VARIABLES, _wrap_variables),
                               (_STRATEGIES, _wrap_strategies),
                               (_KERAS, _wrap_keras), (_LEGACY, _wrap_legacy)):
    wrapt.register_post_import_hook(functools.partial(wrap, name), module)


def device(variable: Any) -> str:
  """Returns the full name of the device that the program requested; or ''.

  A scope that names only another host is no request for a device.
  """
  scope = str(getattr(variable, _SCOPE, ''))
  if scope.endswith(_ANY) and not scope.startswith(_LOCALHOST):
    return ''
  return scope


def path(variable: Any) -> str:
  """Returns a variable's path in Keras 3, 'net/words/embeddings'; else ''.

  If a layer of a subclassed model is built by its first call, the name of its
  variable is only 'net/embeddings', which other layers may share.
  """
  return str(getattr(variable, _PATH, ''))


@contextlib.contextmanager
def unnoted() -> Iterator[None]:
  """Records no scopes of variables that this thread makes in the context."""
  outer, _local.is_muted = _local.is_muted, True
  try:
    yield
  finally:
    _local.is_muted = outer


def _wrap_variables(name: str, module: Any) -> None:
  from tensorflow.python.eager import context

  def init(stock: Any, self: Any, *args: Any, **kwargs: Any) -> None:
    stock(self, *args, **kwargs)
    scope = '' if _local.is_muted else context.context().device_name
    if scope:
      setattr(self, _SCOPE, scope)

  method_wrapping.wrap(getattr(module, name), '__init__', init)


def _wrap_strategies(name: str, module: Any) -> None:
  method_wrapping.wrap(getattr(module, name), 'colocate_vars_with',
                       _colocate_vars_with)


@contextlib.contextmanager
def _colocate_vars_with(stock: Any, self: Any, *args: Any,
                        **kwargs: Any) -> Iterator[Any]:
  with stock(self, *args, **kwargs) as scope, unnoted():
    yield scope


def _wrap_keras(name: str, module: Any) -> None:
  cls = getattr(module, name, None)
  # A later Keras may lack these private names.
  if hasattr(cls, '_initialize'):
    method_wrapping.wrap(cls, '_initialize', _initialize)


def _initialize(stock: Any, self: Any, *args: Any, **kwargs: Any) -> None:
  stock(self, *args, **kwargs)
  # `_value` may be the program's own variable, which may take no attributes.
  with contextlib.suppress(AttributeError):
    setattr(self._value, _PATH, self.path)


def _wrap_legacy(name: str, module: Any) -> None:
  cls = getattr(module, name, None)
  if hasattr(cls, '_prepare'):
    method_wrapping.wrap(cls, '_prepare', _prepare)


def _prepare(stock: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
  from tensorflow.core.framework import attr_value_pb2
  from tensorflow.python.eager import context
  from tensorflow.python.framework import ops
  if context.executing_eagerly():
    return stock(self, *args, **kwargs)
  marked = {UNASKED: attr_value_pb2.AttrValue(b=True)}
  with ops.get_default_graph()._attr_scope(marked):
    return stock(self, *args, **kwargs)
