"""Folders of graphs that the pass has captured, one file per graph."""

from __future__ import annotations

import pathlib
import re
from typing import Callable

# 'fit_of_sequential_11234_0f3a9c.pb': name, number of ops, start of the
# fingerprint.
_NAME = re.compile(r'[^/]+_(\d{1,9})_[0-9a-f]{6}\.pb')
# Characters that are not used in file names.
_OTHERS = re.compile(r'[^A-Za-z0-9_.-]+')
_SHOWN = 5  # Number of other graphs in a message.


def plain(name: str) -> str:
  """Replaces characters that are special in shells by '_': 'fit_of_net'."""
  return _OTHERS.sub('_', name).rstrip('_')


def file_name(name: str, num_ops: int, fingerprint: str) -> str:
  """Returns the file name of a graph.

  Args:
    name: Name of the graph for users.
    num_ops: Number of its ops.
    fingerprint: Hex digits of its fingerprint.
  """
  stem = _OTHERS.sub('_', name)[:80]
  return f'{stem}_{num_ops}_{fingerprint[:6]}.pb'


def is_file_name(name: str) -> bool:
  """Whether `largest` reads files of a name, such as `file_name` returns."""
  return _NAME.fullmatch(name) is not None


def largest(folder: pathlib.Path, tell: Callable[[str],
                                                 None]) -> pathlib.Path | None:
  """Returns the graph with the most ops, usually a training step.

  Args:
    folder: Folder with files named by `file_name`, and perhaps other files.
    tell: Function that is called with a line about the chosen graph and the
      others.

  Returns:
    Path of the graph; None if there is no captured graph.
  """
  found = [(int(match[1]), path.name) for path in folder.iterdir()
           if path.is_file() and (match := _NAME.fullmatch(path.name))]
  if not found:
    return None
  # Of graphs of one size the first by name, as the folder's order may vary.
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
