"""Traced graphs that are kept for the next command on the same model.

To trace a large model takes half a minute. What is kept is used again if
nothing that it came from has changed: what was asked for, this package, what is
installed, the environment, the machine, and each file that the function has
read (`opened_files`). What a function gets from elsewhere, such as the network
or a clock, nobody sees: a line says what to remove to have it called.
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import platform
import re
import sys
import time
from typing import Any, Callable, Mapping

import gdp_grappler
from gdp_grappler import cache
from gdp_grappler.graph.sources import opened_files

# What took less processor time to trace is traced again.
_WORTH_S = 5.
# So many graphs are kept, none larger than this.
_MOST_KEPT, _MOST_BYTES = 64, 256 << 20
_FOLDER = 'traces'
# Variables that differ from one terminal to the next and that no model reads.
_OF_TERMINALS = re.compile(
    r'(_|PWD|OLDPWD|SHLVL|COLUMNS|LINES|WINDOWID|TERM.*|SSH_.*|TMUX.*|STY|'
    r'VTE_.*|LS_COLORS|DISPLAY|DBUS_.*|XDG_SESSION_.*|TMPDIR|PYTEST_.*)')

Tell = Callable[[str], None]


def place(asked: tuple[Any, ...], environment: Mapping[str,
                                                       str]) -> pathlib.Path:
  """Where the graph is kept.

  Args:
    asked: What the tracing process is called with; JSON.
    environment: Of that process.
  """
  variables = {
      name: value for name, value in environment.items()
      if not _OF_TERMINALS.fullmatch(name)
  }
  known = [
      asked,
      os.getcwd(), variables, sys.version,
      platform.node(),
      _own(),
      _installed()
  ]
  digest = hashlib.sha256(json.dumps(known, sort_keys=True).encode())
  label = re.sub(r'[^\w.-]+', '_', str(asked[1]))[-60:].strip('_.')
  return cache.path(_FOLDER, f'{label}_{digest.hexdigest()[:16]}')


def find(kept: pathlib.Path, path: str, tell: Tell) -> dict[str, Any] | None:
  """The answer of the tracing process that was kept; None if there is none.

  Args:
    kept: Of `place`.
    path: What is traced, for messages.
    tell: Hears that it is used, and from when it is.
  """
  data = cache.kept(kept, tell)
  if data is None:
    return None
  digest, _, rest = data.partition(b'\n')
  if digest != _digest(rest):
    return None
  head, _, graph = rest.partition(b'\n')
  fields = json.loads(head)
  if any(opened_files.has_changed(tuple(seen)) for seen in fields['files']):
    return None
  when = time.strftime('%Y-%m-%d %H:%M', time.localtime(fields['time']))
  tell(f'{path}: as traced on {when}, since nothing that it read has changed; '
       f'remove {kept} to trace it anew.')
  return dict(graph=graph, notes=fields['notes'], error=None)


def keep(kept: pathlib.Path, path: str, answer: Mapping[str, Any],
         tell: Tell) -> None:
  """Keeps an answer if that saves time.

  Args:
    kept: Of `place`.
    path: What was traced: a name, or a file.
    answer: Of the tracing process.
    tell: Hears one line if that fails.
  """
  graph = answer['graph']
  if (answer['error'] or answer['seconds'] < _WORTH_S or
      len(graph) > _MOST_BYTES):
    return
  own = opened_files.stamp(pathlib.Path(path).absolute())
  head = json.dumps({
      'files': [*answer['files'], *([own] if own else [])],
      'notes': answer['notes'], 'time': time.time()
  }).encode()
  rest = head + b'\n' + graph
  cache.keep(kept, _digest(rest) + b'\n' + rest, tell)
  _forget(kept.parent)


def _forget(folder: pathlib.Path) -> None:
  """Removes the oldest where there are too many."""
  try:
    by_age = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime)
    for path in by_age[:-_MOST_KEPT]:
      path.unlink()
  except OSError:
    return  # Another command removes them.


def _own() -> list[list[Any]]:
  """What tells one state of this package from another."""
  folder = pathlib.Path(gdp_grappler.__path__[0])
  seen = map(opened_files.stamp,
             sorted((*folder.rglob('*.py'), *folder.rglob('*.so'))))
  return [list(stamp) for stamp in seen if stamp]


def _installed() -> list[list[Any]]:
  """Folders of packages, which change with what is installed in them."""
  found = []
  for name in sys.path:
    if pathlib.Path(name).name in ('site-packages', 'dist-packages'):
      try:
        found.append([name, os.stat(name).st_mtime_ns])
      except OSError:
        continue
  return found


def _digest(data: bytes) -> bytes:
  """What stands before all else, so that damage shows."""
  return hashlib.sha256(data).hexdigest().encode()
