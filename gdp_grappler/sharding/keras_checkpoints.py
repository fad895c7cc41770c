"""Checkpoints of TensorFlow have a table of Keras 3 as one variable.

Keras 3 knows nothing of `tf.train.Checkpoint`: TensorFlow finds variables by
the attributes of layers, and by their places in the lists of optimizers. So
layers and optimizers show it a table where a variable would be, and lists
without the parts.
"""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf
from tensorflow.python.checkpoint import tensor_callable
from tensorflow.python.trackable import base
from tensorflow.python.trackable import data_structures

from gdp_grappler.sharding import table as table_lib

_MARK = '_gdp_shows_whole'
_WHOLE, _LISTS, _WAITING = '_gdp_whole', '_gdp_lists', '_gdp_waiting'
_CHECKPOINT = 'checkpoint'
_VALUE = base.VARIABLE_VALUE_KEY


class _Whole(base.Trackable):
  """A table, as checkpoints take it: by its value."""

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
  """Has layers of a class show their table.

  Args:
    cls: Of Keras 3.
    attribute: By which a layer has its weight.
  """
  stock = cls._trackable_children
  if getattr(stock, _MARK, False):
    return

  @functools.wraps(stock)
  def children(self: Any, save_type: str = _CHECKPOINT,
               **how: Any) -> dict[str, Any]:
    found = dict(stock(self, save_type, **how))
    table = getattr(self, attribute, None)
    if save_type == _CHECKPOINT and isinstance(table, table_lib.Table):
      found[attribute] = _whole(table)
    return found

  setattr(children, _MARK, True)
  cls._trackable_children = children


def wrap_optimizer(cls: Any) -> None:
  """Has optimizers show lists in which tables are in place of their parts.

  Args:
    cls: Of Keras 3, for TensorFlow.
  """
  stock = cls._trackable_children
  if getattr(stock, _MARK, False):
    return

  @functools.wraps(stock)
  def children(self: Any, save_type: str = _CHECKPOINT,
               **how: Any) -> dict[str, Any]:
    found = dict(stock(self, save_type, **how))
    if save_type == _CHECKPOINT:
      for name, child in found.items():
        if isinstance(child, data_structures.List) and _has_parts(child):
          found[name] = _joined(self, name, child)
    return found

  setattr(children, _MARK, True)
  cls._trackable_children = children


def hold(optimizer: Any) -> None:
  """Keeps back a checkpoint that waits for the slots of parts.

  It would give parts what it has for whole variables at their places.

  Args:
    optimizer: Before it makes slots.
  """
  waiting = optimizer._variables._deferred_dependencies
  vars(optimizer)[_WAITING] = dict(waiting)
  waiting.clear()
  # The other lists have nothing that is not in this one.
  others = optimizer._deferred_dependencies
  for name, positions in list(others.items()):
    if not any(position.object_proto.attributes for position in positions):
      del others[name]


def release(optimizer: Any) -> None:
  """Gives slots that are complete what `hold` has kept back for them.

  Args:
    optimizer: After it has made a slot.
  """
  waiting = vars(optimizer).get(_WAITING)
  if not waiting:
    return
  for place, item in enumerate(table_lib.joined(optimizer._variables)):
    if str(place) in waiting and _is_complete(item):
      shown = _whole(item) if isinstance(item, table_lib.Table) else item
      for position in waiting.pop(str(place)):
        position.restore(shown)


def _is_complete(item: Any) -> bool:
  """Whether all parts of a table are there."""
  if not isinstance(item, table_lib.Table):
    return True
  part = table_lib.part_of(item.parts[0])
  return part is not None and len(item.parts) == len(part.table.parts)


def _joined(optimizer: Any, name: str, variables: Any) -> Any:
  """The list of this name with tables; the same as long as it stays so."""
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
  """One for all tables of the same parts."""
  first = table.parts[0]
  if not hasattr(first, _WHOLE):
    setattr(first, _WHOLE, _Whole(table))
  whole: _Whole = getattr(first, _WHOLE)
  return whole


def _has_parts(variables: Any) -> bool:
  return any(table_lib.part_of(v) is not None for v in variables)
