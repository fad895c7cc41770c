"""A weight of tf_keras that is several variables.

TensorFlow has the class `ShardedVariable` for parameter servers. An object of
this class can be a weight of tf_keras, and checkpoints and SavedModels contain
the whole weight. The class splits weights by rows only. This module adds the
split by columns.
"""

from __future__ import annotations

from typing import Any, Callable, Iterable, Sequence
import weakref

import numpy as np
import tensorflow as tf
from tensorflow.python.distribute import sharded_variable
from tensorflow.python.ops import resource_variable_ops
from tensorflow.python.trackable import base
from tensorflow.python.training.saving import saveable_object_util

from gdp_grappler.sharding import choice


class Table(sharded_variable.ShardedVariable):
  """One weight in parts, split along any axis."""

  def __init__(self, parts: Sequence[Any], axis: int) -> None:
    """Makes one weight of variables.

    Args:
      parts: K variables, equal except for their size along `axis`. The name of
        the first one is the weight's name with the number of the part.
      axis: Axis along which the parts are joined.
    """
    name = parts[0].name.split(':')[0].replace(f'{choice.PART}0', '')
    if axis == 0:
      super().__init__(list(parts), name=name)
    else:
      self._join(list(parts), axis, name)
    self.axis = axis

  def _join(self, parts: list[Any], axis: int, name: str) -> None:
    """Sets the attributes of `ShardedVariable` for another axis than rows."""
    self._variables, self._name = parts, name
    self._dtype = parts[0].dtype
    sizes = [int(part.shape[axis]) for part in parts]
    shape = parts[0].shape.as_list()
    firsts = np.cumsum((0, *sizes[:-1])).tolist()
    self._var_offsets = [[first if i == axis else 0 for i in range(len(shape))]
                         for first in firsts]
    shape[axis] = sum(sizes)
    self._shape = tf.TensorShape(shape)
    for part in parts:
      part._sharded_container = weakref.ref(self)
    self._saving_variable = resource_variable_ops.UninitializedVariable(
        shape=self._shape, dtype=self._dtype, name=name,
        trainable=parts[0].trainable,
        synchronization=tf.VariableSynchronization.NONE,
        aggregation=tf.VariableAggregation.NONE)

  @property
  def name(self) -> str:
    """TensorFlow's name of the whole variable."""
    return f'{self._name}:0'

  @property
  def parts(self) -> list[Any]:
    """[K], the variables."""
    return list(self._variables)

  @property
  def trainable(self) -> bool:
    """Whether training changes the weight."""
    return bool(self._variables[0].trainable)

  def value(self) -> Any:
    """The whole weight as a tensor, which each use makes anew."""
    return tf.concat(self.variables, self.axis)

  def numpy(self) -> np.ndarray:
    """Returns the whole weight as an array in the host's memory."""
    return np.concatenate([part.numpy() for part in self._variables], self.axis)

  def assign(self, value: Any, use_locking: bool | None = None,
             name: str | None = None, read_value: bool = True) -> Table:
    """Sets all parts to a value of the whole weight's shape.

    Raises:
      ValueError: the value has another shape.
    """
    del use_locking, name, read_value
    value = np.asarray(value) if isinstance(value, (list, tuple)) else value
    shape = tuple(np.shape(value))
    if shape != tuple(self.shape):
      raise ValueError(f'Weight "{self.name}" has the shape '
                       f'{tuple(self.shape)}; the value has {shape}.')
    for part, first in zip(self._variables, self._var_offsets):
      part.assign(value[tuple(
          slice(f, f + size) for f, size in zip(first, part.shape))])
    return self

  def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
    return np.asarray(self.numpy(), dtype)

  def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Any:
    return tf.convert_to_tensor(self.value(), dtype=dtype, name=name)

  def __getitem__(self, slice_spec: Any) -> Any:
    return super().__getitem__(
        slice_spec) if self.axis == 0 else self.value()[slice_spec]

  def _gather_saveables_for_checkpoint(
      self) -> dict[str, Callable[..., list[Any]]]:
    """Returns savers of slices of one tensor, along any axis."""

    def saveables(name: str = self.name) -> list[Any]:
      return [
          saveable_object_util.ResourceVariableSaveable(
              part,
              tf.Variable.SaveSliceInfo(full_name=self.name,
                                        full_shape=self.shape.as_list(),
                                        var_offset=list(first),
                                        var_shape=part.shape.as_list()).spec,
              name) for part, first in zip(self._variables, self._var_offsets)
      ]

    return {base.VARIABLE_VALUE_KEY: saveables}

  def _export_to_saved_model_graph(self, object_map: Any, tensor_map: Any,
                                   options: Any, **how: Any) -> list[Any]:
    """Exports one variable of the whole weight's shape."""
    resources = []
    for variable in [*self._variables, self._saving_variable]:
      resources += variable._export_to_saved_model_graph(
          object_map, tensor_map, options, **how)
    object_map[self] = Table([object_map[self._saving_variable]], self.axis)
    return resources


def _by_value(name: str) -> Callable[..., Any]:
  operator = getattr(tf.Tensor, name)
  return lambda self, *args: operator(self.value(), *args)


# The operators of `ShardedVariable` join parts by rows only.
for _name in tf.Tensor.OVERLOADABLE_OPERATORS - {'__getitem__'}:
  setattr(Table, _name, _by_value(_name))


def table_of(variable: Any) -> Table | None:
  """Returns the weight of which a variable is a part; None if it is whole."""
  reference = getattr(variable, '_sharded_container', None)
  found = None if reference is None else reference()
  return found if isinstance(found, Table) else None


def has_parts(variables: Iterable[Any]) -> bool:
  """Whether any of the variables is a part of a table."""
  return any(table_of(variable) is not None for variable in variables)


def joined(variables: Iterable[Any]) -> list[Any]:
  """Returns variables, with one table in place of all parts of a weight."""
  found: dict[int, Any] = {}
  for variable in variables:
    whole = table_of(variable)
    whole = variable if whole is None else whole
    found.setdefault(id(whole), whole)
  return list(found.values())


def sizes(length: int, count: int) -> tuple[int, ...]:
  """Rows of each part, as `tf.nn.embedding_lookup` expects them ('div').

  Args:
    length: Rows of the table.
    count: Wanted number of parts. There are fewer if there are fewer rows.
  """
  each, more = divmod(length, min(count, length))
  return tuple(each + (i < more) for i in range(min(count, length)))
