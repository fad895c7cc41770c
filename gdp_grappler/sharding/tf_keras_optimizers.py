"""Makes optimizers of tf_keras save the slots of a table as one variable.

Each part has slots of its own on its device. Checkpoints and files have the
slots of a table as one variable. tf_keras joins slots in this way for parameter
servers, but by rows only.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Iterator

from gdp_grappler import method_wrapping
from gdp_grappler.sharding import factored_slots
from gdp_grappler.sharding import tf_keras_table
from gdp_grappler.sharding import whole_weights

_OPTIMIZERS = 'tf_keras.src.optimizers'
# Names of variables that every optimizer has, even without slots.
_OWN = ('_variables', '_iterations', '_learning_rate')
# Updates that depend on the whole variable, by norms or by rows and columns.
_NOT_BY_ELEMENT = ('Adafactor',)


@functools.cache
def install() -> None:
  """Wraps the methods that make, save and load slots."""
  import wrapt
  wrapt.register_post_import_hook(_wrap_optimizers, f'{_OPTIMIZERS}.optimizer')
  wrapt.register_post_import_hook(_wrap_legacy,
                                  f'{_OPTIMIZERS}.legacy.optimizer_v2')


class _Slots:
  """Collects the slots of the parts of one table.

  It replaces a class of tf_keras that joins all tables by rows, and gives the
  results the same name.
  """

  def __init__(self, table: tf_keras_table.Table) -> None:
    self._table = table
    self._found: list[Any] = []

  def add_shard(self, variable: Any) -> None:
    self._found.append(variable)

  def has_all_shards(self) -> bool:
    return len(self._found) == len(self._table.parts)

  def build(self) -> tf_keras_table.Table:
    return tf_keras_table.Table(self._found, self._table.axis)


def _wrap_optimizers(module: Any) -> None:
  cls = module._BaseOptimizer
  method_wrapping.wrap(cls, 'add_variable_from_reference', _add)
  method_wrapping.wrap(cls, 'build', _build)
  factored_slots.wrap(cls, tf_keras_table.joined)


def _add(stock: Any, self: Any, model_variable: Any, variable_name: str,
         shape: Any = None, initial_value: Any = None) -> Any:
  """Adds a variable for a variable of the model."""
  table = tf_keras_table.table_of(model_variable)
  whole = shape is None or tuple(shape) == tuple(model_variable.shape)
  if table is None or not whole:
    with _taken_for_whole(model_variable):
      return stock(self, model_variable, variable_name, shape, initial_value)
  self._sharded_variable_builders.setdefault((table._unique_id, variable_name),
                                             _Slots(table))
  return stock(self, model_variable, variable_name, shape, initial_value)


def _build(stock: Any, self: Any, var_list: Any) -> None:
  """Makes the slots of variables."""
  is_new = not factored_slots.is_built(self)
  if is_new:
    factored_slots.check_waiting(self, var_list, tf_keras_table.joined)
  if is_new and tf_keras_table.has_parts(var_list):
    whole_weights.warn_of(self, _NOT_BY_ELEMENT)
    # A waiting checkpoint also has lists of slots, such as `_momentums`.
    # Positions in these lists are those of whole tables, not of parts. So only
    # the slots in `_variables` are restored.
    waiting = self._deferred_dependencies
    for name in set(waiting) - set(_OWN):
      del waiting[name]
  stock(self, var_list)


@contextlib.contextmanager
def _taken_for_whole(variable: Any) -> Iterator[None]:
  """In the context, a variable and its slots count as whole."""
  container = vars(variable).pop('_sharded_container', None)
  try:
    yield
  finally:
    if container is not None:
      variable._sharded_container = container


def _wrap_legacy(module: Any) -> None:
  cls = module.OptimizerV2
  for name, wrapper in (('add_slot', _add_slot), ('get_slot', _get_slot),
                        ('_create_all_weights', _create),
                        ('_create_or_restore_slot_variable', _restore)):
    method_wrapping.wrap(cls, name, wrapper)
  cls.weights = property(lambda self: tf_keras_table.joined(self._weights))


def _add_slot(stock: Any, self: Any, var: Any, slot_name: str, *args: Any,
              **how: Any) -> Any:
  result = stock(self, var, slot_name, *args, **how)
  table = tf_keras_table.table_of(var)
  if table is not None and result.shape == var.shape:
    _join_slots(self, table, slot_name)
  return result


def _get_slot(stock: Any, self: Any, var: Any, slot_name: str) -> Any:
  if isinstance(var, tf_keras_table.Table):
    slot = stock(self, var.parts[0], slot_name)
    return tf_keras_table.table_of(slot)
  return stock(self, var, slot_name)


def _create(stock: Any, self: Any, var_list: Any) -> None:
  if not self._weights and tf_keras_table.has_parts(var_list):
    whole_weights.warn_of(self, _NOT_BY_ELEMENT)
  stock(self, var_list)


def _restore(stock: Any, self: Any, slot_variable_position: Any, slot_name: str,
             variable: Any, *args: Any, **how: Any) -> Any:
  """Restores the slot of a variable or a table, or makes it."""
  if not isinstance(variable, tf_keras_table.Table):
    return stock(self, slot_variable_position, slot_name, variable, *args,
                 **how)
  slot = self._slots.get(variable.parts[0]._unique_id, {}).get(slot_name)
  if slot is None:
    # The slot is made later from the parts, and is restored then.
    self._deferred_slot_restorations.setdefault(slot_name, {}).setdefault(
        variable._unique_id, []).append(slot_variable_position)
  return tf_keras_table.table_of(slot)


def _join_slots(optimizer: Any, table: tf_keras_table.Table, slot: str) -> None:
  """Joins the slots of all parts to one slot, once each part has a slot."""
  known = [
      optimizer._slots.get(part._unique_id, {}).get(slot)
      for part in table.parts
  ]
  if any(k is None for k in known) or tf_keras_table.table_of(known[0]):
    return
  whole = tf_keras_table.Table(known, table.axis)
  # No other object holds the table, so its first slot does.
  known[0]._gdp_whole = whole
  optimizer._restore_slot_variable(slot_name=slot, variable=table,
                                   slot_variable=whole)
