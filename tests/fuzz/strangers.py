"""Damaged files of every kind, and hostile files.

Each file has to be read, or refused by a `GdpError`, in bounded time. No code
in a file may run.
"""

from __future__ import annotations

import contextlib
import functools
import os
import pathlib
import shutil
import sys
import tempfile
from typing import Any, Callable, Iterator

import numpy as np

from fuzz import rules
from gdp_grappler import errors

# Damaged files per seed, interval of the seeds with an obstacle in place of a
# file, and interval of the seeds with a hostile policy or model.
_DAMAGED, _OBSTACLE_TURN, _HOSTILE_TURN = 4, 8, 10
# Files with graphs, which are inconsistent every second time, and their kinds.
_GRAPHS = {
    'captured.pb': 'meta_graph', 'graph_def.pb': 'graph_def',
    'saved/saved_model.pb': 'saved_model',
    'policy/saved_model.pb': 'saved_model'
}
# Audit events that no reader may cause. A reader may write below its own
# folder.
_EFFECTS = ('os.exec', 'os.fork', 'os.posix_spawn', 'os.system',
            'pickle.find_class', 'socket.bind', 'socket.connect',
            'subprocess.Popen')


def breaches(seed: int, checked: Callable[[],
                                          object]) -> Iterator[rules.Breach]:
  """Returns all rules that readers break for the files of a seed.

  Args:
    seed: Seed of the kinds of files and their damage.
    checked: Called for each file that was read.
  """
  from helpers import readers  # isort: skip  # First, because it chooses Keras.
  from helpers import damage
  from helpers import graph_damage
  kind = list(readers.READERS)[seed % len(readers.READERS)]
  with tempfile.TemporaryDirectory() as folder:
    shutil.copytree(_good(kind), folder, dirs_exist_ok=True)
    path = pathlib.Path(folder, kind)
    data = path.read_bytes()
    for number in range(_DAMAGED):
      rng = np.random.default_rng([seed, number])
      path.write_bytes(
          graph_damage.lying(_GRAPHS[kind], data, rng)
          if kind in _GRAPHS and number % 2 else damage.damaged(data, rng))
      checked()
      yield from _broken(functools.partial(readers.read, kind), path, folder,
                         f'damage {number} of {kind}')
    if not seed % _OBSTACLE_TURN:
      for what in damage.obstacles(path):
        checked()
        yield from _broken(lambda p, what=what: _refused(kind, p, what), path,
                           folder, f'{what} as {kind}')
    if not seed % _HOSTILE_TURN:
      checked()
      yield from _hostile(seed // _HOSTILE_TURN, pathlib.Path(folder))


def _refused(kind: str, path: pathlib.Path, what: str) -> None:
  from helpers import readers
  if readers.read(kind, path) and what not in readers.READERS[kind].taken:
    raise AssertionError('it is taken')


@functools.cache
def _good(kind: str) -> pathlib.Path:
  """Returns a folder with a good file and the files that it needs."""
  from helpers import readers
  folder = pathlib.Path(_folder().name, str(_good.cache_info().misses))
  path = folder / kind
  path.parent.mkdir(parents=True)
  readers.READERS[kind].write(path)
  assert readers.read(kind, path), kind
  return folder


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
  return tempfile.TemporaryDirectory()


def _hostile(number: int, folder: pathlib.Path) -> Iterator[rules.Breach]:
  """Writes one of the files with code that should not run."""
  import tensorflow as tf
  tf.get_logger().setLevel('ERROR')

  from gdp_grappler.placers.policy import policy_ops
  from helpers import hostile
  from helpers import readers
  effects, changes = list(hostile.SIDE_EFFECTS), list(hostile.CHANGES)
  number %= len(effects) + len(changes) + 1
  if number < len(effects):
    what = f'a policy with {effects[number]}'
    path = hostile.policy(folder / 'harm',
                          hostile.SIDE_EFFECTS[effects[number]])
  elif number < len(effects) + len(changes):
    what = f'a policy with {changes[number - len(effects)]}'
    path = hostile.policy(folder / 'harm', tf.no_op)
    hostile.CHANGES[changes[number - len(effects)]](path)
  else:
    path = hostile.model(folder / 'harm', folder / 'owned')
    yield from _broken(functools.partial(readers.read, 'saved/saved_model.pb'),
                       path / 'saved_model.pb', folder, 'a model that writes')
    return

  def loaded(path: pathlib.Path) -> None:
    if readers.read('policy/policy.json', path / 'policy.json'):
      raise AssertionError('it is loaded')
    try:
      policy_ops.check(path)
    except errors.PolicyMismatchError:
      return
    raise AssertionError('TensorFlow is asked to load it')

  yield from _broken(loaded, path, folder, what)


def _broken(read: Callable[[pathlib.Path], object], path: pathlib.Path,
            folder: str | pathlib.Path, what: str) -> Iterator[rules.Breach]:
  """Returns the rules that are broken when a file is read."""
  try:
    with _watched(folder) as seen:
      read(path)
  except AssertionError as error:
    yield rules.Breach('one clear error', f'{what}: {error}')
  owned = [p for p in pathlib.Path(folder).rglob('owned*')]
  for event in seen + owned:
    yield rules.Breach('nothing runs', f'{what}: {event}')


_heard: list[str] | None = None
_home = ''


@contextlib.contextmanager
def _watched(folder: str | pathlib.Path) -> Iterator[list[str]]:
  """Yields a list that gets side effects of the context.

  The current folder is `folder` while the context lasts.
  """
  global _heard, _home
  _listen()
  before, seen = os.getcwd(), list[str]()
  os.chdir(folder)
  _heard, _home = seen, str(folder)
  try:
    yield seen
  finally:
    _heard = None
    os.chdir(before)


@functools.cache
def _listen() -> None:
  """Installs an audit hook, once per process; Python cannot remove it."""
  sys.addaudithook(_hear)


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
  if _heard is None:
    return
  if event in _EFFECTS or (event == 'open' and _writes(*arguments)):
    _heard.append(f'{event} {arguments!r:.200}')


def _writes(path: Any, mode: Any, flags: Any) -> bool:
  """Whether a file outside the folder is opened for writing."""
  del mode
  return (isinstance(path, (str, os.PathLike)) and isinstance(flags, int) and
          bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)) and
          not os.path.abspath(path).startswith((_home, os.devnull)))
