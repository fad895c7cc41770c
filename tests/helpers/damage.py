"""Damages files in random ways."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any, Callable, Iterator

import numpy as np

Rng = np.random.Generator
# Values that replace a value of a JSON file.
_VALUES: tuple[Any, ...] = (None, True, -1, 0, 1.5, 1e308, -1e308, float('nan'),
                            float('inf'), 2**31, 2**63, 2**64, 10**400, '',
                            'x' * 10_000, '\0', '\ud800', 'GPU:99', [], [[]],
                            {}, {'a': 1})


def damaged(data: bytes, rng: Rng) -> bytes:
  """Returns damaged bytes, which may by chance equal the original bytes."""
  ways: list[Callable[[bytes, Rng], bytes]] = [
      _cut, _flipped, _flipped, _zeroed, _twice, _noise, _text_changed
  ]
  if data[:1] in b'{[' and data:
    ways += [_leaf_changed] * 5
  return ways[rng.integers(len(ways))](data, rng)


def obstacles(path: pathlib.Path) -> Iterator[str]:
  """Replaces a file by each of `OBSTACLES` in turn.

  Yields:
    Name of the present obstacle.
  """
  for what, make in OBSTACLES.items():
    if path.is_dir():
      path.rmdir()
    else:
      path.unlink(missing_ok=True)
    make(path)
    yield what


def _zeros(path: pathlib.Path, size: int) -> None:
  with path.open('wb') as file:
    file.truncate(size)


# By name: a function that makes something other than our file at a path.
OBSTACLES: dict[str, Callable[[pathlib.Path], object]] = {
    'nothing': lambda path: None,
    'an empty file': lambda path: path.touch(),
    'a folder': lambda path: path.mkdir(),
    'a pipe': os.mkfifo,
    'a link to itself': lambda path: path.symlink_to(path.name),
    'a link to an endless device': lambda path: path.symlink_to('/dev/zero'),
    'a terabyte of zeros': lambda path: _zeros(path, 1 << 40),
    'megabytes of zeros': lambda path: _zeros(path, 8 << 20),
    'deep lists': lambda path: path.write_text('[' * 200_000),
    'deep objects': lambda path: path.write_text('{"nodes":' * 200_000),
    'deep text': lambda path: path.write_text('node { ' * 200_000),
    'spaces': lambda path: path.write_text('{' + ' ' * (8 << 20)),
    'one long word': lambda path: path.write_text('a' * (8 << 20)),
}


def _at(data: bytes, rng: Rng) -> int:
  return int(rng.integers(len(data) + 1))


def _cut(data: bytes, rng: Rng) -> bytes:
  return data[:_at(data, rng)]


def _flipped(data: bytes, rng: Rng) -> bytes:
  result = bytearray(data)
  for place in rng.integers(len(data), size=int(rng.integers(1, 9))):
    result[place] ^= 1 << int(rng.integers(8))
  return bytes(result)


def _zeroed(data: bytes, rng: Rng) -> bytes:
  first, size = _at(data, rng), int(rng.integers(1, 200))
  return data[:first] + bytes(len(
      data[first:first + size])) + data[first + size:]


def _twice(data: bytes, rng: Rng) -> bytes:
  first, last = sorted((_at(data, rng), _at(data, rng)))
  return data[:last] + data[first:]


def _noise(data: bytes, rng: Rng) -> bytes:
  place = _at(data, rng)
  return data[:place] + rng.bytes(int(rng.integers(1, 50))) + data[place:]


def _text_changed(data: bytes, rng: Rng) -> bytes:
  """Returns the text with one digit replaced by another number or text."""
  places = [i for i, byte in enumerate(data) if chr(byte).isdigit()]
  if not places:
    return _flipped(data, rng)
  place = places[rng.integers(len(places))]
  new = [b'9' * 12, b'9' * 30, b'-1', b'1e308', b'nan', b'',
         b'0'][rng.integers(7)]
  return data[:place] + new + data[place + 1:]


def _leaf_changed(data: bytes, rng: Rng) -> bytes:
  """Returns JSON with one value changed or removed, or with a key twice."""
  root = {'': json.loads(data)}
  places = list(_places(root))
  holder, key = places[rng.integers(len(places))]
  kind = rng.integers(8)
  if not kind and holder is not root:
    del holder[key]
  elif kind == 1 and isinstance(holder, dict) and holder is not root:
    holder[f'{key}!'] = holder[key]
    return json.dumps(root['']).replace(f'{key}!', str(key)).encode()
  else:
    holder[key] = _VALUES[rng.integers(len(_VALUES))]
  return json.dumps(root['']).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
  """Yields the holder and the key of every value inside a value."""
  if isinstance(value, (dict, list)):
    for key in list(value) if isinstance(value, dict) else range(len(value)):
      yield value, key
      yield from _places(value[key])
