"""Replaces `processes.calls` in tests that call a function many times.

Each call has a process of its own, as usual. The process is a fork of a process
that has imported the function, because starting Python and importing take
longer than most calls.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import pickle
import signal
import subprocess
import sys
from typing import Any, BinaryIO, Iterator, Mapping, Sequence
from unittest import mock

from gdp_grappler.placers.partitioning import partition_process
from gdp_grappler.processes import calls
from gdp_grappler.processes import launching


class Calls:
  """Replaces the module `calls`; a context manager."""

  CallError = calls.CallError

  def __init__(self, modules: Sequence[str],
               environment: Mapping[str, str] | None = None):
    """Starts the process that forks.

    Args:
      modules: Modules that the process imports.
      environment: Environment variables of the process, which include those of
        every call.
    """
    self._environment = dict(environment or {})
    self._process = subprocess.Popen(
        [sys.executable, '-P', '-m', 'helpers.forked_calls', *modules],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env=launching.environment(environment))

  def __enter__(self) -> Calls:
    return self

  def __exit__(self, *unused_error: object) -> None:
    self._process.kill()
    self._process.communicate()

  def call(self, function: str, *arguments: Any, timeout_s: float,
           environment: Mapping[str, str] | None = None) -> Any:
    """See `calls.call`."""
    assert (environment or {}).items() <= self._environment.items()
    stdin, stdout = self._process.stdin, self._process.stdout
    assert stdin and stdout
    place = os.getcwd(), [p for p in sys.path if p]
    pickle.dump((function, arguments, timeout_s, place), stdin)
    stdin.flush()
    result, problem = pickle.load(stdout)
    if problem:
      raise calls.CallError(problem)
    return result


@contextlib.contextmanager
def partitioners() -> Iterator[None]:
  """Makes the partitioners use forks while the context lasts."""
  folder = partition_process.__name__.rpartition('.')[0]
  modules = [f'{folder}.{name}_worker' for name in ('mt_kahypar', 'scotch')]
  with (Calls(modules, {'SCOTCH_PTHREAD_NUMBER': '1'}) as
        forks, mock.patch.object(partition_process, 'calls', forks)):
    yield


def _main(*modules: str) -> None:
  requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), 'wb')
  os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
  gc.set_threshold(100_000)  # As in `conftest.py`.
  for module in modules:
    importlib.import_module(module)
  gc.freeze()
  while True:
    try:
      request = pickle.load(requests)
    except EOFError:
      return
    answers.write(_answer(*request))
    answers.flush()


def _answer(function: str, arguments: Sequence[Any], timeout_s: float,
            place: tuple[str, list[str]]) -> bytes:
  """Returns the pickled (result, problem) of a call in a fork."""
  reading, writing = os.pipe()
  child = os.fork()
  if not child:
    with os.fdopen(writing, 'wb') as pipe:
      os.chdir(place[0])
      sys.path[:] = place[1]
      signal.setitimer(signal.ITIMER_REAL, timeout_s)
      _send(function, arguments, pipe)
    os._exit(0)
  os.close(writing)
  with os.fdopen(reading, 'rb') as pipe:
    answer = pipe.read()
  code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
  return answer if not code else pickle.dumps((None, f'it ended with {code}'))


def _send(function: str, arguments: Sequence[Any], pipe: BinaryIO) -> None:
  try:
    answer = launching.resolve(function)(*arguments), ''
  except Exception as error:
    text = ' '.join(str(error).split())[:calls._LONGEST].rstrip('. ')
    answer = None, f'{type(error).__name__}: {text}'
  pickle.dump(answer, pipe)


if __name__ == '__main__':
  _main(*sys.argv[1:])
