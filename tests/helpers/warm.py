"""Starts child processes as forks of a process that has imported TensorFlow.

Importing TensorFlow takes longer than most work of child processes in tests. So
`subprocess` keeps a starter for each kind of child: a process that imports
TensorFlow once and forks for each start. The fork becomes a child of the test
process, with the requested environment, files and exit code. Children of
unknown kinds start as usual. Within `cold`, all children start as usual.
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
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any, Iterator, Mapping, NoReturn, Sequence

NAME = 'gdp_warm'  # Name of the processes that fork.
MARK = '# A fork will do.\n'  # First line of a text of `-c` that may be forked.
_CHILD, _FORKED = 'gdp_grappler.processes.child', 'helpers.forked'
_WITHOUT_KERAS = '--without-keras'
# The result of this function depends on the imports of its process. So the
# function does not run in a fork of a running program.
_LOOKS = 'gdp_grappler.placers.policy.policy_check'
# Functions and programs of children that need TensorFlow.
_WANT_TENSORFLOW = ('gdp_grappler.api.', 'gdp_grappler.evaluation.',
                    'gdp_grappler.graph.', 'gdp_grappler.workloads.',
                    'benchmarks.', 'decisions:', 'gdp_grappler.bin.gdp',
                    'helpers.fused_runs', _LOOKS, 'small_training',
                    'small_pretraining')
# Programs that disable the plugin before they import TensorFlow.
_WITHOUT_PLUGIN = ('gdp_grappler.bin.gdp', 'benchmarks.fidelity',
                   'benchmarks.fit_gain', 'benchmarks.gpu.dry_calibration',
                   'benchmarks.gpu.predictions', 'benchmarks.paper',
                   'small_training', 'small_pretraining')
_WITH_KERAS_2 = ('benchmarks.paper', 'small_training', 'small_pretraining',
                 'placer_model.')
_OF_USERS = pathlib.Path(__file__).parents[1] / 'e2e' / 'programs'
_CELLS = '/benchmarks/showing/cells.py'  # Runs cells in a process of its own.
# Programs that check or change the start of TensorFlow.
_COLD = ('compared.py', 'leftovers.py')
_LEGACY, _DISABLE = 'TF_USE_LEGACY_KERAS', 'GDP_DISABLE'
_PRELOAD, _ONEDNN = 'LD_PRELOAD', 'TF_ENABLE_ONEDNN_OPTS'
_CAPTURE = 'GDP_CAPTURE_DIR'
# Variables that are read when TensorFlow is imported, so they distinguish
# kinds; and all variables that may differ from those of the test process.
_APART = (_LEGACY, _DISABLE, _PRELOAD, _ONEDNN, _CAPTURE)
_ANY = (*_APART, 'PYTHONPATH', 'TMPDIR', 'no_grpc_proxy', 'GDP_CACHE_DIR',
        'TF_GRPC_REUSE_PORT', 'PYTEST_CURRENT_TEST', 'TF_CPP_MIN_LOG_LEVEL',
        'TF_FORCE_GPU_ALLOW_GROWTH', 'CUDA_VISIBLE_DEVICES',
        'HIP_VISIBLE_DEVICES')
_DEFAULTS = {'KERAS_BACKEND': 'tensorflow'}
_MOST = 3  # Largest number of processes that fork.
_SET_NAME, _SET_SUBREAPER = 15, 36  # Of <sys/prctl.h>.
_NUMBER = struct.Struct('i')
_POPEN = subprocess.Popen

_lock = threading.RLock()
_starters: dict[_Kind, _Starter] = {}
_ids: set[int] = set()  # Ids of all processes that fork.
_is_cold = False
_own_path: list[str] = []  # Import path without folders of variables.
_image: _Kind | None = None  # Kind of this process, if it starts only forks.


@dataclasses.dataclass(frozen=True)
class _Kind:
  """The state of a process that the import of TensorFlow determines.

  Attributes:
    keras: Whether Keras is imported as well.
    variables: Values of the variables `_APART`.
  """

  keras: bool
  variables: tuple[str | None, ...]


@contextlib.contextmanager
def cold() -> Iterator[None]:
  """Makes all processes start as usual while the context lasts."""
  global _is_cold
  before, _is_cold = _is_cold, True
  try:
    yield
  finally:
    _is_cold = before


def forks(process: int, name: str) -> bool:
  """Whether a process is one that forks, and does no work itself.

  Args:
    process: Id of the process.
    name: Name of the process in the kernel, which is set when it can fork.
  """
  return name == NAME or process in _ids


def install() -> None:
  """Makes `subprocess` of this process start children as forks."""
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
    if kind and _image:
      kind = _image if _serves(_image, kind) else None
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
  """Returns the kind of a command; None for an unknown kind."""
  env = {**os.environ} if env is None else env
  if isinstance(args, (str, bytes)) or args[0] != sys.executable or any(
      env.get(name, _DEFAULTS.get(name)) != os.environ.get(
          name, _DEFAULTS.get(name))
      for name in env.keys() | os.environ.keys() if name not in _ANY):
    return None
  variables = {name: env.get(name) or None for name in _APART}
  if preloaded := variables[_PRELOAD]:  # A library may be named twice.
    variables[_PRELOAD] = ':'.join(dict.fromkeys(preloaded.split(':')))
  _, module, program, arguments = _parsed([os.fspath(a) for a in args[1:]])
  if not module:
    folder, name = os.path.split(program)
    is_warm = (name not in _COLD
               if folder == str(_OF_USERS) else program.endswith(_CELLS))
    return _Kind(True, tuple(variables.values())) if is_warm else None
  said = ' '.join(arguments if module in (_CHILD, _FORKED) else [module])
  if not (module.startswith(MARK) if program == '-c' else any(
      each in said for each in _WANT_TENSORFLOW)):
    return None
  if _image and _LOOKS in said:
    return None
  if any(each in said for each in _WITHOUT_PLUGIN):
    variables[_DISABLE] = '1'
  if any(each in said for each in _WITH_KERAS_2):
    variables[_LEGACY] = '1'
  return _Kind(_WITHOUT_KERAS not in arguments, tuple(variables.values()))


def _serves(image: _Kind, kind: _Kind) -> bool:
  """Whether forks of an existing process can replace those of a kind.

  An imported plugin does nothing unless it is used. A child without Keras hides
  an imported Keras.
  """
  same = [_PRELOAD, _ONEDNN, _CAPTURE] + [_LEGACY] * kind.keras
  found, wanted = (dict(zip(_APART, each.variables)) for each in (image, kind))
  return (all(found[name] == wanted[name] for name in same) and
          image.keras >= kind.keras and
          not (found[_DISABLE] == '1' and wanted[_DISABLE] != '1'))


def _parsed(args: Sequence[str]) -> tuple[bool, str, str, list[str]]:
  """Returns whether -P is given; module, text or ''; sys.argv[0]; the rest."""
  is_safe = args[0] == '-P'
  args = list(args[is_safe:])
  if args[0] == '-m':
    return is_safe, args[1], args[1], args[2:]
  if args[0] == '-c':
    return is_safe, args[1], '-c', args[2:]
  return is_safe, '', args[0], args[1:]


def _starter(kind: _Kind) -> _Starter:
  with _lock:
    # A starter of another kind may do. But a child without Keras may check that
    # Keras was not imported.
    if kind.keras and kind not in _starters:
      kind = next((k for k in _starters if _serves(k, kind)), kind)
    result = _starters.pop(kind, None) or _Starter(*_started(kind))
    _starters[kind] = result  # The starter that was used last is the last.
    while len(_starters) > _MOST:
      _starters.pop(next(iter(_starters))).close()
    return result


def nest(kind: _Kind | None = None) -> None:
  """Makes children of this process' own kind forks of this process.

  Args:
    kind: Kind of this process; None for the kind by its environment.
  """
  global _image, _own_path
  _own_path = _own_path or [p for p in sys.path if p not in _paths()]
  if kind is None:
    kind = _Kind(True, tuple(os.environ.get(name) or None for name in _APART))
  ours, theirs = socket.socketpair()
  sys.stdout.flush()
  sys.stderr.flush()
  process = os.fork()
  if not process:
    ours.close()
    _serve(theirs, kind)
  theirs.close()
  _image, _starters[kind] = kind, _Starter(ours, process)
  subprocess.Popen = _Popen  # type: ignore[misc]


class _Starter:
  """The process that forks children of a kind."""

  def __init__(self, ours: socket.socket, process: int) -> None:
    """Takes the socket for requests, and the id of the process."""
    self._socket, self._process = ours, process

  def start(self, request: Mapping[str, Any], streams: Sequence[int]) -> int:
    """Returns the id of a new child of this process."""
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
    """Ends the process; its children continue."""
    self._socket.close()
    os.waitpid(self._process, 0)


def _started(kind: _Kind) -> tuple[socket.socket, int]:
  """Starts a process that imports TensorFlow; returns `_Starter` arguments."""
  ours, theirs = socket.socketpair()
  env = {k: v for k, v in os.environ.items() if k not in _APART}
  env.update((k, v) for k, v in zip(_APART, kind.variables) if v is not None)
  env['PYTHONPATH'] = os.pathsep.join([str(_OF_USERS.parents[1]), *_paths()])
  command = [sys.executable, '-P', '-m', 'helpers.warm', str(theirs.fileno())]
  with theirs:
    process = _POPEN([*command, json.dumps(kind.keras)], env=env,
                     pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
                     stdout=subprocess.DEVNULL)
  _ids.add(process.pid)
  process.returncode = 0  # `_Starter` waits for the process.
  return ours, process.pid


def _paths() -> list[str]:
  """Returns the folders of imports that the environment adds."""
  paths = os.environ.get('PYTHONPATH', '').split(os.pathsep)
  return [os.path.abspath(path) for path in paths if path]


def _prctl(option: int, value: Any) -> None:
  ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _main(descriptor: str, keras: str) -> None:
  """Imports TensorFlow and forks."""
  global _own_path
  gc.set_threshold(100_000)  # As in `conftest.py`.
  _own_path = [path for path in sys.path if path not in _paths()]
  if not json.loads(keras):
    sys.modules['keras'] = None  # type: ignore[assignment]
  importlib.import_module('tensorflow')
  variables = tuple(os.environ.get(name) for name in _APART)
  gc.freeze()
  _serve(socket.socket(fileno=int(descriptor)),
         _Kind(json.loads(keras), variables))


def _serve(parent: socket.socket, kind: _Kind) -> NoReturn:
  """Forks until the parent ends."""
  _prctl(_SET_NAME, NAME.encode())
  interrupted = signal.signal(signal.SIGINT, signal.SIG_IGN)
  while True:
    said, descriptors, _, _ = socket.recv_fds(parent, 1, 4)
    if not said:
      os._exit(0)
    request = json.loads(os.pread(descriptors[0], 1 << 24, 0))
    reading, writing = os.pipe()
    middle = os.fork()
    if not middle:
      child = os.fork()
      if child:
        os.write(writing, _NUMBER.pack(child))
        os._exit(0)
      for each in (parent.detach(), reading, writing):
        os.close(each)
      signal.signal(signal.SIGINT, interrupted)
      _become(request, descriptors, kind)
      sys.exit()
    os.waitpid(middle, 0)
    # The parent of the fork has ended, so the fork is now a child of the test
    # process that sent the request.
    parent.sendall(os.read(reading, _NUMBER.size))
    for each in (*descriptors, reading, writing):
      os.close(each)


def _become(request: Mapping[str, Any], descriptors: Sequence[int],
            kind: _Kind) -> None:
  """Runs the requested program in this process, and ends the process."""
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
  is_safe, module, program, arguments = _parsed(request['args'])
  sys.path[:] = dict.fromkeys([*_paths(), *_own_path])
  if not is_safe:
    first = '' if program == '-c' else os.getcwd()
    sys.path.insert(0, first if module else os.path.dirname(program))
  importlib.invalidate_caches()
  _starters.clear()
  if module != _CHILD:
    nest(kind)
  sys.argv = [program, *arguments]
  if program == '-c':
    exec(compile(module, '<string>', 'exec'), {'__name__': '__main__'})
  elif module:
    runpy.run_module(program, run_name='__main__', alter_sys=True)
  else:
    runpy.run_path(program, run_name='__main__')


if __name__ == '__main__':
  # Children import `helpers.warm`. They have to get this module object, not
  # `__main__`.
  importlib.import_module('helpers.warm')._main(*sys.argv[1:])
