"""Starts and ends a child process that answers messages, for the parent."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import tempfile
import time
from typing import Any, Iterable, Mapping

from gdp_grappler import errors
from gdp_grappler.processes import launching
from gdp_grappler.processes import messages

# Signals that come from another process or the kernel, not from a crash.
_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Died(Exception):
  """A process crashed or hung. The message says how.

  Attributes:
    killed: Whether a signal from outside ended the process, such as a user's
      or the kernel's if memory runs out.
  """

  def __init__(self, message: str, killed: bool = False) -> None:
    super().__init__(message)
    self.killed = killed


class WorkerProcess:
  """A Python function that runs in a separate process.

  The process has its own session, so only the parent gets Ctrl-C. The parent
  then ends the process. Text that the process prints is not shown.
  """

  def __init__(self, function: str, arguments: Iterable[Any] = (),
               environment: Mapping[str, str] | None = None,
               keras: bool = True) -> None:
    """Starts the process.

    Args:
      function: 'package.module:function'.
      arguments: Arguments of the function, as values for JSON.
      environment: Environment variables that differ from those of
        `launching.environment`.
      keras: Whether the process may import Keras.

    Raises:
      GdpError: the process cannot be started.
    """
    command = launching.command(function, arguments, keras)
    with contextlib.ExitStack() as opened:
      try:
        self._stderr = opened.enter_context(tempfile.TemporaryFile())
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE,
                                         stderr=self._stderr,
                                         env=launching.environment(environment),
                                         start_new_session=True)
      except OSError as error:
        raise errors.GdpError(
            f'Cannot start a child process: {error}. It needs {command[0]}, '
            'the temporary folder, free processes and memory.') from error
      opened.pop_all()
    # Popen makes a stream of every PIPE.
    assert self._process.stdin is not None
    assert self._process.stdout is not None
    self._stdin, self._stdout = self._process.stdin, self._process.stdout

  @property
  def alive(self) -> bool:
    """Whether the process runs."""
    return self._process.poll() is None

  @property
  def pid(self) -> int:
    """Number of the process."""
    return self._process.pid

  def fileno(self) -> int:
    """Returns a file for selectors; readable on an answer or at the end."""
    return self._stdout.fileno()

  def send(self, message: Any) -> None:
    """Sends a message to the process.

    Raises:
      Died: the process has ended.
    """
    try:
      messages.send(self._stdin, message)
    except BrokenPipeError as error:
      raise self.death() from error

  def receive(self, timeout_s: float,
              others: Iterable[WorkerProcess] = ()) -> Any:
    """Waits for a message.

    Args:
      timeout_s: Time limit for the whole message, in seconds.
      others: Processes that this process needs in order to answer.

    Raises:
      Died: no message came in time, or one of the processes ended.
    """
    end = time.monotonic() + timeout_s
    try:
      return messages.receive(lambda size: self._read(size, end, others))
    except EOFError as error:
      raise self.death() from error
    except TimeoutError as error:
      raise Died(f'no answer within {timeout_s:g} s') from error

  def kill(self) -> None:
    """Ends the process and what it has forked at once, without waiting."""
    if self._process.poll() is None:
      os.killpg(self._process.pid, signal.SIGKILL)

  def close(self) -> None:
    """Ends the process at once and frees all that belongs to it."""
    self.kill()
    self._process.wait()
    for stream in (self._stdin, self._stdout, self._stderr):
      try:
        stream.close()
      except BrokenPipeError:  # Unsent bytes for a process that has ended.
        continue

  def death(self) -> Died:
    """Waits until the process has ended, and returns how it ended."""
    code = self._process.wait()
    killed = -code in _FROM_OUTSIDE
    if code == -signal.SIGKILL:
      return Died(
          'the process was killed, by the system for want of memory or '
          'by somebody', killed)
    how = (f'signal {signal.Signals(-code).name}'
           if code < 0 else f'exit code {code}')
    last = ''.join(f': {line[:200]}' for line in self.said()[-1:])
    return Died(f'the process ended with {how}{last}', killed)

  def said(self) -> list[str]:
    """Returns the lines of the process's standard error."""
    self._stderr.seek(0)
    return self._stderr.read().decode(errors='replace').strip().splitlines()

  def _read(self, size: int, end: float,
            others: Iterable[WorkerProcess]) -> bytes:
    """Reads `size` bytes; fewer if the process has ended."""
    data = bytearray()
    with selectors.DefaultSelector() as selector:
      for process in (self, *others):
        selector.register(process, selectors.EVENT_READ, process)
      while len(data) < size:
        ready = [
            key.data
            for key, _ in selector.select(max(0., end - time.monotonic()))
        ]
        if not ready:
          raise TimeoutError
        for process in ready:
          if process is not self:
            raise process.death()
        part = os.read(self.fileno(), size - len(data))
        if not part:
          break
        data += part
    return bytes(data)
