"""Starts children that need TensorFlow as forks of one that has imported it.

To import TensorFlow takes longer than most of what tests have a child do. So
`subprocess` here has a process for each kind of child, which imports it once
and forks for each start. What is started is a child of this process all the
same, with the environment, the files and the end that it was to have. What is
no kind of child that we know is started as ever; within `cold`, all is.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import dataclasses
import gc
import importlib
import json
import os
import pathlib
import random
import runpy
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any, Iterator, Mapping, Sequence

NAME = 'gdp_warm'  # Of the processes that fork.
_CHILD = ['-P', '-m', 'gdp_grappler.processes.child']
_WITHOUT_KERAS = '--without-keras'
# Of functions that children run, those that want TensorFlow.
_WANT_TENSORFLOW = ('gdp_grappler.api.', 'gdp_grappler.evaluation.',
                    'gdp_grappler.graph.', 'gdp_grappler.workloads.',
                    'helpers.fused_runs', 'placer_model.export')
_OF_USERS = pathlib.Path(__file__).parents[1] / 'e2e' / 'programs'
# Programs that look at the start itself, or change it.
_COLD = ('compared.py', 'captured.py', 'leftovers.py')
_LEGACY, _DISABLE = 'TF_USE_LEGACY_KERAS', 'GDP_DISABLE'
# Variables that are read when TensorFlow is imported tell kinds apart; of the
# others these may differ from ours.
_APART = (_LEGACY, _DISABLE, 'LD_PRELOAD')
_ANY = (*_APART, 'PYTHONPATH', 'TMPDIR', 'no_grpc_proxy', 'GDP_CACHE_DIR',
        'TF_GRPC_REUSE_PORT', 'PYTEST_CURRENT_TEST', 'TF_CPP_MIN_LOG_LEVEL',
        'CUDA_VISIBLE_DEVICES', 'HIP_VISIBLE_DEVICES')
_MOST = 3  # Processes that fork, at a time.
_SET_NAME, _SET_SUBREAPER = 15, 36  # Of <sys/prctl.h>.
_NUMBER = struct.Struct('i')
_POPEN = subprocess.Popen

_lock = threading.RLock()
_starters: dict[_Kind, _Starter] = {}
_is_cold = False


@dataclasses.dataclass(frozen=True)
class _Kind:
  """What is settled when TensorFlow has been imported.

  Attributes:
    keras: Whether Keras has been as well.
    variables: Values of `_APART`.
  """

  keras: bool
  variables: tuple[str | None, ...]


@contextlib.contextmanager
def cold() -> Iterator[None]:
  """Within it all processes start as those of users do."""
  global _is_cold
  before, _is_cold = _is_cold, True
  try:
    yield
  finally:
    _is_cold = before


def install() -> None:
  """Has `subprocess`, in this process, start children so."""
  subprocess.Popen = _Popen  # type: ignore[misc]
  atexit.register(_end)


def _end() -> None:
  while _starters:
    _starters.popitem()[1].close()


class _Popen(_POPEN):
  """A process that may be a fork."""

  def _execute_child(self, args: Any, executable: Any, preexec_fn: Any,
                     close_fds: Any, pass_fds: Any, cwd: Any, env: Any,
                     startupinfo: Any, creationflags: Any, shell: Any,
                     p2cread: int, p2cwrite: int, c2pread: int, c2pwrite: int,
                     errread: int, errwrite: int, restore_signals: Any, *others:
                     Any) -> None:
    *identity, new_session, group = others
    usual = not (preexec_fn or pass_fds or shell or executable or
                 group not in (None, -1) or
                 any(each not in (None, -1) for each in identity))
    kind = _kind(args, env) if usual and not _is_cold else None
    if kind is None:
      super()._execute_child(args, executable, preexec_fn, close_fds, pass_fds,
                             cwd, env, startupinfo, creationflags, shell,
                             p2cread, p2cwrite, c2pread, c2pwrite, errread,
                             errwrite, restore_signals, *others)
      return
    streams = (p2cread, c2pwrite, errwrite)
    request = dict(args=[os.fspath(each) for each in args[1:]],
                   cwd=os.path.abspath(cwd or '.'), new_session=new_session,
                   env=dict(os.environ if env is None else env))
    self.pid = _starter(kind).start(
        request,
        [number if fd == -1 else fd for number, fd in enumerate(streams)])
    self._child_created = True
    self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread,
                         errwrite)


def _kind(args: Any, env: Mapping[str, str] | None) -> _Kind | None:
  """The kind of a command; None for one that is not known."""
  env = os.environ if env is None else env
  if isinstance(args, (str, bytes)) or args[0] != sys.executable or any(
      env.get(name) != os.environ.get(name)
      for name in env.keys() | os.environ.keys() if name not in _ANY):
    return None
  args = [os.fspath(each) for each in args[1:]]
  variables = {name: env.get(name) or None for name in _APART}
  if args[:3] == _CHILD:
    functions = ' '.join(args[3:])
    if any(each in functions for each in _WANT_TENSORFLOW):
      if 'placer_model.' in functions:
        variables[_LEGACY] = '1'
      return _Kind(args[3] != _WITHOUT_KERAS, tuple(variables.values()))
  elif os.path.dirname(args[0]) == str(_OF_USERS):
    if os.path.basename(args[0]) not in _COLD:
      return _Kind(True, tuple(variables.values()))
  return None


def _starter(kind: _Kind) -> _Starter:
  with _lock:
    result = _starters.pop(kind, None) or _Starter(kind)
    _starters[kind] = result  # The last is the one that was used last.
    while len(_starters) > _MOST:
      _starters.pop(next(iter(_starters))).close()
    return result


class _Starter:
  """The process that forks children of a kind."""

  def __init__(self, kind: _Kind) -> None:
    self._socket, theirs = socket.socketpair()
    env = {k: v for k, v in os.environ.items() if k not in _APART}
    env.update((k, v) for k, v in zip(_APART, kind.variables) if v is not None)
    env['PYTHONPATH'] = os.pathsep.join(
        os.path.abspath(p) for p in sys.path if p)
    with theirs:
      self._process = _POPEN([
          sys.executable, '-P', '-m', __name__,
          str(theirs.fileno()),
          json.dumps(kind.keras)
      ], env=env, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL)

  def start(self, request: Mapping[str, Any], streams: Sequence[int]) -> int:
    """The id of a new child of this process."""
    with (_lock, tempfile.TemporaryFile() as file):
      file.write(json.dumps({**request, 'parent': os.getpid()}).encode())
      file.flush()
      _prctl(_SET_SUBREAPER, 1)
      try:
        socket.send_fds(self._socket, [b'!'], [file.fileno(), *streams])
        answer = self._socket.recv(_NUMBER.size, socket.MSG_WAITALL)
      finally:
        _prctl(_SET_SUBREAPER, 0)
    return _NUMBER.unpack(answer)[0]

  def close(self) -> None:
    """Ends it; what it has started goes on."""
    self._socket.close()
    self._process.wait()


def _prctl(option: int, value: Any) -> None:
  ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _main(descriptor: str, keras: str) -> None:
  """Forks until the parent ends; returns in each child, after its program."""
  gc.set_threshold(100_000)  # As in `conftest.py`.
  parent = socket.socket(fileno=int(descriptor))
  before = len([p for p in os.environ['PYTHONPATH'].split(os.pathsep) if p])
  if not json.loads(keras):
    sys.modules['keras'] = None  # type: ignore[assignment]
  importlib.import_module('tensorflow')
  if json.loads(keras) and os.environ.get(_LEGACY):
    importlib.import_module('tf_keras')
  gc.freeze()
  own_path = sys.path[before:]
  _prctl(_SET_NAME, NAME.encode())
  while True:
    said, descriptors, _, _ = socket.recv_fds(parent, 1, 4)
    if not said:
      return
    request = json.loads(os.pread(descriptors[0], 1 << 24, 0))
    reading, writing = os.pipe()
    middle = os.fork()
    if not middle:
      child = os.fork()
      if child:
        os.write(writing, _NUMBER.pack(child))
        os._exit(0)
      parent.detach()
      for each in (int(descriptor), reading, writing):
        os.close(each)
      _become(request, descriptors, own_path)
      return
    os.waitpid(middle, 0)
    for each in (*descriptors, writing):
      os.close(each)
    # Its parent is gone, so it is a child of whoever asked.
    parent.sendall(os.read(reading, _NUMBER.size))
    os.close(reading)


def _become(request: Mapping[str, Any], descriptors: Sequence[int],
            own_path: Sequence[str]) -> None:
  """Runs what was asked for, in a process that is to end then."""
  while os.getppid() != request['parent']:
    time.sleep(.001)
  _prctl(_SET_NAME, b'python')
  if request['new_session']:
    os.setsid()
  for number, each in enumerate(descriptors[1:]):
    os.dup2(each, number)
  for each in descriptors:
    if each > 2:
      os.close(each)
  os.chdir(request['cwd'])
  os.environ.clear()
  os.environ.update(request['env'])
  random.seed()
  sys.modules['numpy'].random.seed()
  tempfile.tempdir = None
  path = filter(None, os.environ.get('PYTHONPATH', '').split(os.pathsep))
  sys.path[:] = [*map(os.path.abspath, path), *own_path]
  importlib.invalidate_caches()
  program, *arguments = request['args']
  is_module = program == _CHILD[0]
  if is_module:
    program, arguments = arguments[1], arguments[2:]
  sys.argv = [program, *arguments]
  if is_module:
    runpy.run_module(program, run_name='__main__', alter_sys=True)
  else:
    sys.path.insert(0, os.path.dirname(program))
    runpy.run_path(program, run_name='__main__')


if __name__ == '__main__':
  _main(*sys.argv[1:])
