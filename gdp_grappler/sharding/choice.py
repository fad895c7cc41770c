"""Which tables a user wants in parts, and what parts they are in."""

from __future__ import annotations

import fnmatch
import math
import operator
from typing import Any, Mapping, Sequence

from gdp_grappler import errors
from gdp_grappler import spelling

AUTO, OFF = 'auto', 'off'
# Names of layers, or patterns of them, and how many parts each table gets.
Named = tuple[tuple[str, int], ...]
Choice = str | Named

_MOST_PARTS = 1024
_VALID = ('"auto", "off", or names of layers with numbers of parts, such as '
          'words=2')
# Of the room of a device: what a part and all that is kept for it may take, so
# that there is a choice of devices and room for the rest of the model.
_PART_OF_ROOM = .5
# Rows of large parts are a multiple of this, so that most kernels divide the
# product with a part as they do that with the whole.
_ALIGNMENT = 64
_ALIGNED_FROM = 16 * _ALIGNMENT


def checked(value: Any) -> Choice:
  """What the option and the Python API take.

  Args:
    value: 'auto', 'off', or a mapping such as {'words': 2, 'head_*': 4}.

  Raises:
    GdpError: it is something else.
  """
  if value in (AUTO, OFF):
    return str(value)
  if isinstance(value, tuple):
    value = dict(value)
  if not isinstance(value, Mapping) or not value:
    raise errors.GdpError(f'split_tables is {value!r}; valid are {_VALID}.')
  return tuple(
      (_name(name), _count(name, count)) for name, count in value.items())


def parse(text: str) -> Choice:
  """What the command line takes: 'auto', 'off' or 'words=2,head_*=4'.

  Raises:
    GdpError: it is something else.
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
  """What `parse` reads back."""
  if isinstance(chosen, str):
    return chosen
  return ','.join(f'{name}={count}' for name, count in chosen)


def of_layer(chosen: Choice, layer: str) -> int:
  """In how many parts a layer of this name was asked for; 0 if it was not."""
  if isinstance(chosen, str):
    return 0
  for pattern, count in chosen:
    if fnmatch.fnmatchcase(layer, pattern):
      return count
  return 0


def parts_for(needs_bytes: float, rooms_bytes: Sequence[int]) -> int:
  """In how many parts a table is split for devices of which none can hold it.

  Args:
    needs_bytes: Of the table and all that is kept for it.
    rooms_bytes: [D], what may be used of each device.

  Returns:
    A multiple of the number of devices, so that all can have as much; 1 if
    the table has room on the largest, or parts would not help.
  """
  largest = max(rooms_bytes, default=0)
  if needs_bytes <= largest or largest <= 0 or len(rooms_bytes) < 2:
    return 1
  each = _PART_OF_ROOM * largest * len(rooms_bytes)
  return min(len(rooms_bytes) * math.ceil(needs_bytes / each), _MOST_PARTS)


def sizes(length: int, count: int) -> tuple[int, ...]:
  """How many rows each part has: all as many, but for the last.

  Args:
    length: Rows of the table.
    count: Parts that were asked for; fewer come about where rows are few.
  """
  each = math.ceil(length / count)
  if each >= _ALIGNED_FROM:
    each = _ALIGNMENT * math.ceil(each / _ALIGNMENT)
  full, rest = divmod(length, each)
  return (each,) * full + ((rest,) if rest else ())


def _name(name: Any) -> str:
  if not isinstance(name, str) or not name:
    raise errors.GdpError(f'split_tables names a layer {name!r}; valid are '
                          f'{_VALID}.')
  return name


def _count(name: str, count: Any) -> int:
  try:
    number = 0 if isinstance(count, bool) else operator.index(count)
  except TypeError:
    number = 0
  if not 1 <= number <= _MOST_PARTS:
    raise errors.GdpError(f'split_tables has {count!r} parts for "{name}"; '
                          f'give a whole number from 1 to {_MOST_PARTS}.')
  return number
