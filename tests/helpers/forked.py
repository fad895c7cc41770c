"""Runs a console program many times, but imports it only once.

This is for runs that differ only in their arguments: bad flags, bad input, and
small models. Tests of a fresh start use `fresh`.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
from typing import Callable, Mapping, NoReturn, Sequence

from helpers import fresh
from helpers import warm


class Program:
  """An interpreter that has imported a program, and forks for each run.

  The object is a context manager. Runs share nothing but files.
  """

  def __init__(self, function: str, imports: Sequence[str] = (),
               timeout_s: float = 200, folder: pathlib.Path | None = None,
               **variables: str):
    """Starts the interpreter.

    Args:
      function: The program, as 'package.module:function'.
      imports: Modules that the program would import later.
      timeout_s: Time limit of each run, in seconds.
      folder: Current folder, and first folder of imports; None for that of the
        tests.
      **variables: Further environment variables.
    """
    path = [str(folder)] if folder else []
    path += [p for p in sys.path if p]
    self._timeout_s = timeout_s
    self._process = subprocess.Popen(
        [sys.executable, '-P', '-m', 'helpers.forked', function, *imports],
        text=True, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env=fresh.environment(PYTHONPATH=os.pathsep.join(path),
                              **variables), start_new_session=True)

  def __enter__(self) -> Program:
    return self

  def __exit__(self, *unused_error: object) -> None:
    with contextlib.suppress(ProcessLookupError):
      os.killpg(self._process.pid, signal.SIGKILL)
    self._process.communicate()

  @property
  def pid(self) -> int:
    """Id of the process that forks."""
    return self._process.pid

  def run(self, *arguments: str, **variables: str) -> fresh.Finished:
    """Returns the result of a command line with further variables."""
    result, = self.together([arguments], **variables)
    return result

  def together(self, arguments: Sequence[Sequence[str]],
               **variables: str) -> list[fresh.Finished]:
    """Returns the results of command lines that run at the same time."""
    stdin, stdout = self._process.stdin, self._process.stdout
    assert stdin and stdout
    request = [list(map(list, arguments)), variables, self._timeout_s]
    stdin.write(json.dumps(request) + '\n')
    stdin.flush()
    return [fresh.Finished(*fields) for fields in json.loads(stdout.readline())]


def run(function: str, imports: Sequence[str],
        arguments: Sequence[Sequence[str]], timeout_s: float = 200,
        folder: pathlib.Path | None = None,
        **variables: str) -> list[fresh.Finished]:
  """Returns the result of each command line; see `Program`."""
  with Program(function, imports, timeout_s, folder, **variables) as program:
    return [program.run(*each) for each in arguments]


def _main(function: str, *imports: str) -> None:
  gc.set_threshold(100_000)  # As in `conftest.py`.
  module, name = function.split(':')
  for each in (module, *imports):
    importlib.import_module(each)
  program = getattr(sys.modules[module], name)
  gc.freeze()
  for line in sys.stdin:
    arguments, variables, timeout_s = json.loads(line)
    with contextlib.ExitStack() as stack:
      ends = [
          _started(program, each, variables, timeout_s, stack)
          for each in arguments
      ]
      print(json.dumps([end() for end in ends]), flush=True)


def _started(program: Callable[[], int | None], arguments: Sequence[str],
             variables: Mapping[str, str], timeout_s: float,
             stack: contextlib.ExitStack) -> Callable[[], tuple[int, str, str]]:
  """Forks a run, and returns a function that waits for its end."""
  files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(2)]
  child = os.fork()
  if not child:
    os.environ.update(variables)
    signal.setitimer(signal.ITIMER_REAL, timeout_s)
    if 'tensorflow' in sys.modules:
      warm.nest()
    _become(program, arguments, *(file.fileno() for file in files))

  def end() -> tuple[int, str, str]:
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    for file in files:
      file.seek(0)
    out, err = (file.read().decode() for file in files)
    return code, out, err

  return end


def _become(program: Callable[[], int | None], arguments: Sequence[str],
            out: int, err: int) -> NoReturn:
  os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
  os.dup2(out, 1)
  os.dup2(err, 2)
  sys.argv = ['program', *arguments]
  code = 1
  try:
    code = program() or 0
  except SystemExit as end:
    code = end.code if isinstance(end.code, int) else int(end.code is not None)
  finally:
    with contextlib.suppress(OSError):
      sys.stdout.flush()
      sys.stderr.flush()
    os._exit(code)


if __name__ == '__main__':
  _main(*sys.argv[1:])
