"""Scopes in which a user overrules the placer.

The scopes write node attributes, because attributes reach the pass. TensorFlow
has already resolved `tf.device` by then, and a requested device looks like any
other device.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from typing import Any

from gdp_grappler import errors
from gdp_grappler.cluster import cluster
from gdp_grappler.plugin import config_epoch

PIN = '_gdp_pin'
LEAVE_ALONE = '_gdp_leave_alone'


class _Active(threading.local):
  """Attributes of the scopes this thread is in, outermost first."""

  def __init__(self) -> None:
    super().__init__()
    self.attributes: list[dict[str, Any]] = []


_active = _Active()


def were_used() -> bool:
  """Whether this process ever entered a scope."""
  return _inherit_in_new_graphs.cache_info().currsize > 0


class _Scope(contextlib.AbstractContextManager[Any]):
  """Sets attributes on all ops made inside, also in graphs made inside.

  This is a class, because AutoGraph would convert a generator.
  """

  def __init__(self, attributes: dict[str, Any]) -> None:
    self._attributes = attributes
    self._exits: list[contextlib.ExitStack] = []

  def __enter__(self) -> None:
    import tensorflow as tf
    _inherit_in_new_graphs()
    stack = contextlib.ExitStack()
    if not tf.executing_eagerly():
      graph = tf.compat.v1.get_default_graph()
      # Inside a `pin`, an outer `leave_alone` does not hold, and the reverse.
      # The value None removes its attribute.
      outer = dict.fromkeys({PIN, LEAVE_ALONE} & graph._attr_scope_map.keys())
      stack.enter_context(graph._attr_scope({**outer, **self._attributes}))
    _active.attributes.append(self._attributes)
    stack.callback(_active.attributes.pop)
    self._exits.append(stack)

  def __exit__(self, *exception: Any) -> None:
    self._exits.pop().close()


class pin(_Scope):
  """Ops made inside go to one device, and the placer cannot move them.

  The scope holds for ops of a `tf.function`, a Keras layer or a v1 graph. This
  includes the bodies of loops, branches and functions that are traced inside.
  The scope does not affect ops that run eagerly. If scopes are nested, the
  innermost scope holds.

  After the first scope, Grappler no longer fuses, merges or rewrites ops of any
  function while the option is on, because such ops would lose their device. So
  numbers may change in their last digits.

    with gdp_grappler.pin('GPU:1'):
      x = tf.matmul(x, w)
  """

  def __init__(self, device: str) -> None:
    """Creates the scope.

    Args:
      device: 'GPU:1', '/gpu:1' or a full name.

    Raises:
      ValueError: the text is not the name of a device.
    """
    try:
      name = cluster.canonical_device(device)
    except (errors.ClusterError, TypeError) as error:
      raise ValueError(f'gdp_grappler.pin: {error}') from error
    super().__init__({PIN: _attribute(s=name.encode())})


class leave_alone(_Scope):
  """Ops made inside keep the device that TensorFlow gave them.

  The scope holds for the same ops as `pin`.
  """

  def __init__(self) -> None:
    super().__init__({LEAVE_ALONE: _attribute(b=True)})


def _attribute(**value: Any) -> Any:
  from tensorflow.core.framework import attr_value_pb2
  return attr_value_pb2.AttrValue(**value)


@functools.cache
def _inherit_in_new_graphs() -> None:
  """Gives new graphs of functions, loops and branches the innermost scope.

  TensorFlow also has to make its configuration again, because `option.add_to`
  depends on `were_used`.
  """
  from tensorflow.python.framework import func_graph
  config_epoch.note()
  stock = func_graph.FuncGraph.__init__

  @functools.wraps(stock)
  def init(self: Any, *args: str, **kwargs: Any) -> None:
    stock(self, *args, **kwargs)
    for attributes in _active.attributes[-1:]:
      self._attr_scope_map.update(attributes)

  func_graph.FuncGraph.__init__ = init
