"""Folders of graphs that the pass has written, one file per graph."""

from __future__ import annotations

import pathlib
import re
from typing import Callable

# 'fit_of_sequential_11234_0f3a9c.pb': name, number of ops, fingerprint's start.
_NAME = re.compile(r'.+_(\d{1,9})_[0-9a-f]{6}\.pb')
# What file names do not have.
_OTHERS = re.compile(r'[^A-Za-z0-9_.-]+')
_SHOWN = 5  # Of the graphs that are not taken.


def plain(name: str) -> str:
  """A name without what shells take for their own: 'fit_of_net'."""
  return _OTHERS.sub('_', name).rstrip('_')


def file_name(name: str, num_ops: int, fingerprint: str) -> str:
  """What the file of a graph is called.

  Args:
    name: The graph's, readable.
    num_ops: Its ops.
    fingerprint: Hex digits.
  """
  stem = _OTHERS.sub('_', name)[:80]
  return f'{stem}_{num_ops}_{fingerprint[:6]}.pb'


def largest(folder: pathlib.Path, tell: Callable[[str],
                                                 None]) -> pathlib.Path | None:
  """The graph with the most ops, which is a training step in most programs.

  Args:
    folder: Of `file_name`s, and perhaps of other files.
    tell: Hears which it is and what else there is to name.

  Returns:
    None if there is no captured graph.
  """
  found = [(int(match[1]), path.name) for path in folder.iterdir()
           if path.is_file() and (match := _NAME.fullmatch(path.name))]
  if not found:
    return None
  # Of graphs of one size the first by name, whatever the folder's order is.
  (_, first), *rest = sorted(found, key=lambda item: (-item[0], item[1]))
  if rest:
    others = ', '.join(name for _, name in rest[:_SHOWN])
    more = len(rest) - _SHOWN
    others += f' and {more} more' if more > 0 else ''
    tell(f'{folder} has {len(found)} graphs: taking {first}, the one with the '
         f'most ops. Name the file for another one: {others}.')
  else:
    tell(f'{folder}: taking {first}.')
  return folder / first
