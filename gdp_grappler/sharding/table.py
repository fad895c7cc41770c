"""A weight that is several variables, each a part of its rows or columns.

To other code the weight looks like one variable of Keras: it has a shape and a
value, converts to a tensor, and can be assigned to.
"""

from __future__ import annotations

import dataclasses
import operator
from typing import Any, Callable, Iterable, Sequence

import numpy as np

_MARK = '_gdp_part'


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
  """Describes a variable that is a part of a table or of one of its slots.

  Attributes:
    table: The table.
    index: Index of the part.
    slot: Name of the slot, such as 'momentum', if the variable is an
      optimizer's; '' if it is a part of the table itself.
  """

  table: Table
  index: int
  slot: str = ''


class Table:
  """One weight in parts."""

  def __init__(self, name: str, axis: int, parts: Sequence[Any]) -> None:
    """Makes one weight of several variables.

    Args:
      name: Name of the weight, as if it were one variable.
      axis: Axis along which the parts are joined.
      parts: K variables of Keras, equal in type and in all sizes except that
        along `axis`.
    """
    self.name = name
    self.axis = axis
    self.parts = tuple(parts)

  @property
  def path(self) -> str:
    """Path of the layer and the weight, as if it were one variable."""
    return '/'.join([*self.parts[0].path.split('/')[:-1], self.name])

  @property
  def sizes(self) -> tuple[int, ...]:
    """[K], sizes of the parts along the axis."""
    return tuple(int(part.shape[self.axis]) for part in self.parts)

  @property
  def shape(self) -> tuple[int, ...]:
    """Shape of the whole weight."""
    result = [int(size) for size in self.parts[0].shape]
    result[self.axis] = sum(self.sizes)
    return tuple(result)

  @property
  def ndim(self) -> int:
    """Number of dimensions."""
    return len(self.shape)

  @property
  def dtype(self) -> str:
    """Type of the elements of all parts."""
    return str(self.parts[0].dtype)

  @property
  def trainable(self) -> bool:
    """Whether training changes the weight."""
    return bool(self.parts[0].trainable)

  @trainable.setter
  def trainable(self, value: bool) -> None:
    """Sets the property of all parts."""
    for part in self.parts:
      part.trainable = value

  @property
  def value(self) -> Any:
    """The whole weight as a tensor, which each use makes anew."""
    import tensorflow as tf
    return tf.concat([tf.convert_to_tensor(part) for part in self.parts],
                     self.axis)

  def numpy(self) -> np.ndarray:
    """Returns the whole weight as an array in the host's memory."""
    return np.concatenate([np.asarray(part.numpy()) for part in self.parts],
                          self.axis)

  def assign(self, value: Any) -> Table:
    """Sets all parts to a value of the whole weight's shape.

    Raises:
      ValueError: the value has another shape.
    """
    value = np.asarray(value) if isinstance(value, (list, tuple)) else value
    shape = tuple(np.shape(value))
    if shape != self.shape:
      raise ValueError(f'Weight "{self.name}" has the shape {self.shape}; the '
                       f'value has {shape}.')
    ends = np.cumsum((0, *self.sizes))
    for part, first, last in zip(self.parts, ends[:-1], ends[1:]):
      rows = [slice(None)] * self.ndim
      rows[self.axis] = slice(int(first), int(last))
      part.assign(value[tuple(rows)])
    return self

  def assign_add(self, value: Any) -> Table:
    """Adds a value of the whole weight's shape."""
    return self.assign(self.value + value)

  def assign_sub(self, value: Any) -> Table:
    """Subtracts a value of the whole weight's shape."""
    return self.assign(self.value - value)

  def __getitem__(self, index: Any) -> Any:
    return self.value[index]

  def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
    return self.numpy().astype(dtype or self.dtype, copy=False)

  def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Any:
    import tensorflow as tf
    return tf.convert_to_tensor(self.value, dtype=dtype, name=name)

  def __repr__(self) -> str:
    return (f'<Table path={self.path}, shape={self.shape}, dtype={self.dtype}, '
            f'parts={len(self.parts)}>')


def _by_value(name: str) -> Callable[..., Any]:
  compute = getattr(operator, name)
  return lambda self, *others: compute(self.value, *others)


def _by_value_reflected(name: str) -> Callable[..., Any]:
  compute = getattr(operator, name)
  return lambda self, other: compute(other, self.value)


# `==` is left out. It compares by identity, as searches in lists expect.
for _name in ('__neg__', '__abs__', '__lt__', '__le__', '__gt__', '__ge__'):
  setattr(Table, _name, _by_value(_name))
for _name in ('add', 'sub', 'mul', 'truediv', 'floordiv', 'mod', 'pow',
              'matmul'):
  setattr(Table, f'__{_name}__', _by_value(f'__{_name}__'))
  setattr(Table, f'__r{_name}__', _by_value_reflected(f'__{_name}__'))


def mark(variable: Any, part: Part) -> None:
  """Records on a variable that it is a part."""
  setattr(variable, _MARK, part)


def part_of(variable: Any) -> Part | None:
  """Returns the part that a variable is; None for a whole variable."""
  return getattr(variable, _MARK, None)


def has_parts(variables: Iterable[Any]) -> bool:
  """Whether any of the variables is a part of a table."""
  return any(part_of(variable) is not None for variable in variables)


def joined(variables: Iterable[Any]) -> list[Any]:
  """Returns variables with one table in place of all parts of a weight or slot.

  A table has the position of its first part, which is the position that the
  whole weight or slot would have.
  """
  parts: dict[tuple[int, str], dict[int, Any]] = {}
  # The key is the id of a whole variable, or the table and slot of a part.
  places: dict[Any, Any] = {}
  for variable in variables:
    part = part_of(variable)
    if part is None:
      places[id(variable)] = variable
      continue
    key = id(part.table), part.slot
    parts.setdefault(key, {})[part.index] = variable
    places.setdefault(key, part.table)
  return [
      place if not isinstance(place, Table) else _of_parts(
          place, key[1], parts[key]) for key, place in places.items()
  ]


def _of_parts(table: Table, slot: str, found: dict[int, Any]) -> Table:
  if not slot:
    return table
  return Table(f'{table.name}_{slot}', table.axis,
               [found[index] for index in sorted(found)])
