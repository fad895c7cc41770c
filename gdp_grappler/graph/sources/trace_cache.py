"""Keeps traced graphs for the next command on the same model.

Tracing of a large model takes half a minute. A kept graph is used again if
nothing that it depends on has changed: the arguments, this package, the
installed packages, the environment, the machine, and each file that the
function has read (`opened_files`). Other inputs of a function, such as the
network or a clock, cannot be checked. So a line tells the user which file to
remove to have the function called again.
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

# Seconds of processor time. Graphs that took less are not kept.
_WORTH_S = 5.
# Largest number of graphs.
_MOST_KEPT = 64
# Largest size of a graph, in bytes.
_MOST_BYTES = 256 << 20
_FOLDER = 'traces'
# Environment variables that depend on the terminal and that no model reads.
_OF_TERMINALS = re.compile(
    r'(_|PWD|OLDPWD|SHLVL|COLUMNS|LINES|WINDOWID|TERM.*|SSH_.*|TMUX.*|STY|'
    r'VTE_.*|LS_COLORS|DISPLAY|DBUS_.*|XDG_SESSION_.*|TMPDIR|PYTEST_.*)')

Tell = Callable[[str], None]


def place(asked: tuple[Any, ...], environment: Mapping[str,
                                                       str]) -> pathlib.Path:
  """Returns the path of the file in which a graph is kept.

  Args:
    asked: Arguments of the tracing process, in JSON types.
    environment: Environment of that process.
  """
  variables = {
      name: value for name, value in environment.items()
      if not _OF_TERMINALS.fullmatch(name)
  }
  known = [
      asked,
      # If the model is a file, the content of the file counts.
      opened_files.stamp(pathlib.Path(asked[1]).absolute()),
      os.getcwd(),
      variables,
      sys.version,
      platform.node(),
      _own(),
      _installed()
  ]
  digest = hashlib.sha256(json.dumps(known, sort_keys=True).encode())
  label = re.sub(r'[^\w.-]+', '_', str(asked[1]))[-60:].strip('_.')
  return cache.path(_FOLDER, f'{label}_{digest.hexdigest()[:16]}')


def find(kept: pathlib.Path, path: str, tell: Tell) -> dict[str, Any] | None:
  """Returns the kept answer of the tracing process; None if there is none.

  Args:
    kept: Path that `place` returned.
    path: Path or name of the model, for messages.
    tell: Function that is called with a line if a kept answer is used.
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


def keep(kept: pathlib.Path, answer: Mapping[str, Any], tell: Tell) -> None:
  """Keeps an answer if this saves time.

  Args:
    kept: Path that `place` returned.
    answer: Answer of the tracing process.
    tell: Function that is called with a line if the answer cannot be kept.
  """
  graph = answer['graph']
  if (answer['error'] or answer['seconds'] < _WORTH_S or
      len(graph) > _MOST_BYTES):
    return
  head = json.dumps(
      {'files': answer['files'], 'notes': answer['notes'],
       'time': time.time()}).encode()
  rest = head + b'\n' + graph
  cache.keep(kept, _digest(rest) + b'\n' + rest, tell)
  cache.make_room(kept.parent, _MOST_KEPT, _MOST_KEPT * _MOST_BYTES, ending='')


def _own() -> list[list[Any]]:
  """Returns the stamps of all files of this package."""
  folder = pathlib.Path(gdp_grappler.__path__[0])
  seen = map(opened_files.stamp,
             sorted((*folder.rglob('*.py'), *folder.rglob('*.so'))))
  return [list(stamp) for stamp in seen if stamp]


def _installed() -> list[list[Any]]:
  """Returns the folders of packages; an installation changes their times."""
  found = []
  for name in sys.path:
    if pathlib.Path(name).name in ('site-packages', 'dist-packages'):
      try:
        found.append([name, os.stat(name).st_mtime_ns])
      except OSError:
        continue
  return found


def _digest(data: bytes) -> bytes:
  """Returns the first bytes of a kept file, by which damage is found."""
  return hashlib.sha256(data).hexdigest().encode()
