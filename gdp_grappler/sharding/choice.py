"""The user's choice of tables in parts, and the sizes of the parts."""

from __future__ import annotations

import collections
import fnmatch
import math
import operator
import re
from typing import Any, Iterable, Mapping, Sequence

from gdp_grappler import errors
from gdp_grappler import spelling

AUTO, OFF = 'auto', 'off'
# Between the name of a weight and the number of a part.
PART = '_part_'
_OF_PART = re.compile(rf'.+{PART}\d+')
# Names of layers, or patterns of names, with the number of parts of each table.
Named = tuple[tuple[str, int], ...]
Choice = str | Named

_MOST_PARTS = 1024  # Of a table. Tracing takes longer with each part.
_VALID = ('"auto", "off", or names of layers with numbers of parts, such as '
          'words=2')
# Largest table that is split, as a multiple of the memory of all devices. The
# parts of a larger one would not fit either, and a step of so many parts takes
# long to trace.
_MOST_ROOMS = 16
# Largest share of a device's memory for a part, its gradient and its slots. The
# rest is for other layers, and leaves placers a choice of devices for a part.
_PART_OF_ROOM = .5
# Large parts have a multiple of this number of rows. Most kernels then split
# the product with a part into the same blocks as that with the whole table.
_ALIGNMENT = 64
# Least number of rows of a large part. Rounding up then adds few rows.
_ALIGNED_FROM = 16 * _ALIGNMENT


def checked(value: Any) -> Choice:
  """Returns the choice in a value of the option or of the Python API.

  Args:
    value: 'auto', 'off', or a mapping such as {'words': 2, 'head_*': 4}.

  Raises:
    GdpError: the value is something else.
  """
  if value in (AUTO, OFF):
    return str(value)
  try:
    named = dict(value) if isinstance(value, (tuple, Mapping)) else {}
  except (TypeError, ValueError):  # A tuple of something else than pairs.
    named = {}
  if not named:
    raise errors.GdpError(
        f'split_tables is {errors.shown(value)}; valid are {_VALID}.')
  return tuple(
      (_name(name), _count(name, count)) for name, count in named.items())


def parse(text: str) -> Choice:
  """Returns the choice in a flag: 'auto', 'off' or 'words=2,head_*=4'.

  Raises:
    GdpError: the text is something else.
  """
  if text in (AUTO, OFF):
    return text
  named: dict[str, Any] = {}
  for item in text.split(','):
    name, equals, count = item.partition('=')
    if not equals or not count.isdecimal():
      raise errors.GdpError(
          f'{spelling.argument("split_tables", text)}; valid are {_VALID}.')
    named[name] = int(count)
  return checked(named)


def text(chosen: Choice) -> str:
  """Returns a choice as text for `parse`."""
  if isinstance(chosen, str):
    return chosen
  return ','.join(f'{name}={count}' for name, count in chosen)


def of_layer(chosen: Choice, layer: str) -> int:
  """Returns the number of parts that the user chose for a layer; 0 for none."""
  if isinstance(chosen, str):
    return 0
  for pattern, count in chosen:
    if fnmatch.fnmatchcase(layer, pattern):
      return count
  return 0


def parts_for(needs_bytes: float, rooms_bytes: Sequence[int]) -> int:
  """Returns the number of parts for a table that no device can hold.

  Args:
    needs_bytes: Bytes of the table, its gradient and its slots.
    rooms_bytes: [D], usable bytes of each device.

  Returns:
    A multiple of the number of devices, so that all devices can hold the same
    number of parts; but at most `_MOST_PARTS`. 1 if the table fits on the
    largest device, if there is no second device, or if the table is far too
    large for all devices together.
  """
  largest = max(rooms_bytes, default=0)
  if needs_bytes <= largest or largest <= 0 or len(rooms_bytes) < 2:
    return 1
  if needs_bytes > _MOST_ROOMS * sum(rooms_bytes):
    return 1
  each = _PART_OF_ROOM * largest * len(rooms_bytes)
  return min(len(rooms_bytes) * math.ceil(needs_bytes / each), _MOST_PARTS)


def sizes(length: int, count: int) -> tuple[int, ...]:
  """Returns the rows or columns of each part, equal except for the last part.

  Args:
    length: Number of rows or columns of the table.
    count: Wanted number of parts. The result may have fewer.
  """
  each = math.ceil(length / count)
  if each >= _ALIGNED_FROM:
    each = _ALIGNMENT * math.ceil(each / _ALIGNMENT)
  full, rest = divmod(length, each)
  return (each,) * full + ((rest,) if rest else ())


def tables_in_parts(variables: Iterable[str]) -> dict[str, int]:
  """Returns the tables in parts among variables, with the numbers of parts.

  Slots of parts, such as 'adam/words/embeddings_part_0_velocity', do not count.

  Args:
    variables: Names of variables; '' for an op without one.
  """
  found = dict.fromkeys(filter(is_part, variables))
  return dict(collections.Counter(name.rpartition(PART)[0] for name in found))


def is_part(variable: str) -> bool:
  """Whether a variable is a part of a table, and no slot of a part."""
  return _OF_PART.fullmatch(variable) is not None


def is_count(value: Any) -> bool:
  """Whether a value is a number of parts that a table may have."""
  return (isinstance(value, int) and not isinstance(value, bool) and
          1 <= value <= _MOST_PARTS)


def _name(name: Any) -> str:
  if not isinstance(name, str) or not name:
    raise errors.GdpError(
        f'split_tables names a layer {errors.shown(name)}; valid are {_VALID}.')
  return name


def _count(name: str, count: Any) -> int:
  try:
    number = 0 if isinstance(count, bool) else operator.index(count)
  except TypeError:
    number = 0
  if not 1 <= number <= _MOST_PARTS:
    raise errors.GdpError(
        f'split_tables has {errors.shown(count)} parts for "{name}"; '
        f'give a whole number from 1 to {_MOST_PARTS}.')
  return number
