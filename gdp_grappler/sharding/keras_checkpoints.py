"""Saves a table of Keras 3 as one variable in TensorFlow's checkpoints.

Keras 3 does not know `tf.train.Checkpoint`. TensorFlow finds variables by the
attributes of layers, and by the positions in the lists of optimizers. So a
layer shows TensorFlow a table in place of a variable, and an optimizer shows
lists in which the table replaces its parts.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow.python.checkpoint import tensor_callable
from tensorflow.python.trackable import base
from tensorflow.python.trackable import data_structures

from gdp_grappler import method_wrapping
from gdp_grappler.sharding import table as table_lib

_WHOLE, _LISTS, _WAITING = '_gdp_whole', '_gdp_lists', '_gdp_waiting'
_CHECKPOINT = 'checkpoint'
_VALUE = base.VARIABLE_VALUE_KEY


class _Whole(base.Trackable):
  """Makes checkpoints save and restore a table by its value."""

  def __init__(self, table: table_lib.Table) -> None:
    self._table = table

  def _serialize_to_tensors(self) -> dict[str, Any]:

    def value() -> Any:
      with tf.device('/CPU:0'):
        return self._table.value

    return {
        _VALUE:
            tensor_callable.Callable(value, tf.as_dtype(self._table.dtype),
                                     self._table.parts[0].value.device)
    }

  def _restore_from_tensors(self, restored_tensors: dict[str, Any]) -> None:
    self._table.assign(restored_tensors[_VALUE])


def wrap_layer(cls: Any, attribute: str) -> None:
  """Makes layers of a class show TensorFlow their table.

  Args:
    cls: Class of layers of Keras 3.
    attribute: Attribute of the weight.
  """

  def children(stock: Any, self: Any, save_type: str = _CHECKPOINT,
               **how: Any) -> dict[str, Any]:
    found = dict(stock(self, save_type, **how))
    table = getattr(self, attribute, None)
    if save_type == _CHECKPOINT and isinstance(table, table_lib.Table):
      found[attribute] = _whole(table)
    return found

  method_wrapping.wrap(cls, '_trackable_children', children)


def restore_layer(layer: Any, attribute: str, table: table_lib.Table) -> None:
  """Gives a table the value of a checkpoint that was restored before `build`.

  Args:
    layer: A layer of Keras 3.
    attribute: Attribute of the weight.
    table: The weight.
  """
  layer._handle_deferred_dependencies(name=attribute, trackable=_whole(table))


def wrap_optimizer(cls: Any) -> None:
  """Makes optimizers show TensorFlow lists in which tables replace parts.

  Args:
    cls: Class of optimizers of Keras 3 for TensorFlow.
  """
  method_wrapping.wrap(cls, '_trackable_children', _children)


def _children(stock: Any, self: Any, save_type: str = _CHECKPOINT,
              **how: Any) -> dict[str, Any]:
  found = dict(stock(self, save_type, **how))
  if save_type == _CHECKPOINT:
    for name, child in found.items():
      if isinstance(child, data_structures.List) and table_lib.has_parts(child):
        found[name] = _joined(self, name, child)
  return found


def hold(optimizer: Any) -> None:
  """Keeps back a checkpoint that waits for the slots of parts.

  Otherwise the checkpoint would restore values of whole variables into parts at
  the same positions.

  Args:
    optimizer: An optimizer that has no slots yet.
  """
  waiting = optimizer._variables._deferred_dependencies
  kept = dict(waiting)
  vars(optimizer)[_WAITING] = kept
  waiting.clear()
  nodes = {(position.restore_uid, position.proto_id)
           for positions in kept.values() for position in positions}
  others = optimizer._deferred_dependencies
  for name, positions in list(others.items()):
    others[name] = [
        position for position in positions if not _is_list_of(position, nodes)
    ]
    if not others[name]:
      del others[name]


def release(optimizer: Any) -> None:
  """Restores the values that `hold` has kept back into complete slots.

  Args:
    optimizer: An optimizer that has just made a slot.
  """
  waiting = vars(optimizer).get(_WAITING)
  if not waiting:
    return
  for place, item in enumerate(table_lib.joined(optimizer._variables)):
    if str(place) in waiting and _is_complete(item):
      shown = _whole(item) if isinstance(item, table_lib.Table) else item
      for position in waiting.pop(str(place)):
        position.restore(shown)


def _is_list_of(position: Any, nodes: set[tuple[int, int]]) -> bool:
  """Whether a position of a checkpoint is a list of nodes of this set only."""
  proto = position.object_proto
  return bool(proto.children) and not proto.attributes and all(
      (position.restore_uid, child.node_id) in nodes
      for child in proto.children)


def _is_complete(item: Any) -> bool:
  """Whether all parts of a table or slot exist."""
  if not isinstance(item, table_lib.Table):
    return True
  part = table_lib.part_of(item.parts[0])
  return part is not None and len(item.parts) == len(part.table.parts)


def _joined(optimizer: Any, name: str, variables: Any) -> Any:
  """Returns the list `name`, with tables in place of their parts.

  As long as the variables stay the same, all calls return the same object.
  """
  lists = vars(optimizer).setdefault(_LISTS, {})
  ids = tuple(map(id, variables))
  if name not in lists or lists[name][0] != ids:
    items = [
        _whole(item) if isinstance(item, table_lib.Table) else item
        for item in table_lib.joined(variables)
    ]
    lists[name] = ids, data_structures.List(items)
  return lists[name][1]


def _whole(table: table_lib.Table) -> _Whole:
  """Returns the saver of a table; tables of the same parts share one."""
  first = table.parts[0]
  if not hasattr(first, _WHOLE):
    setattr(first, _WHOLE, _Whole(table))
  whole: _Whole = getattr(first, _WHOLE)
  return whole
