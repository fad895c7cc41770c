"""Messages between parent and child processes, and the end of a child.

A message is the length of a pickled object, in 8 bytes, and then the object.
"""

from __future__ import annotations

import dataclasses
import os
import pickle
import select
import struct
import sys
import threading
import time
from typing import Any, BinaryIO, Callable, IO

from gdp_grappler import errors

_LENGTH = struct.Struct('>Q')
_WATCH_S = 1.  # Seconds until an orphan notices that its parent has ended.
_LONGEST = 300  # Characters of the text of TensorFlow's errors.


@dataclasses.dataclass(frozen=True)
class Failure:
  """Why a placement did not run.

  Attributes:
    message: The reason, in one line.
    fatal: Whether no other placement will run, either.
    lost: Whether the reason may be a lost process, not the placement.
    hung: Whether the run took too long.
  """

  message: str
  fatal: bool = False
  lost: bool = False
  hung: bool = False


def cause(error: BaseException) -> str:
  """Returns the text of an error of TensorFlow as one line.

  The result leaves out the traceback in errors of Python functions that ops
  call.
  """
  text = str(error).split('Traceback (most recent call last)')[0]
  return errors.one_line(text, _LONGEST)


def send(stream: IO[bytes], message: Any) -> None:
  """Writes one message."""
  data = pickle.dumps(message)
  stream.write(_LENGTH.pack(len(data)) + data)
  stream.flush()


def receive(read: Callable[[int], bytes]) -> Any:
  """Reads one message.

  Args:
    read: Function that returns a given number of bytes, or fewer at the end.

  Raises:
    EOFError: the other process has ended.
  """
  header = read(_LENGTH.size)
  if len(header) < _LENGTH.size:
    raise EOFError
  size, = _LENGTH.unpack(header)
  data = read(size)
  if len(data) < size:
    raise EOFError
  return pickle.loads(data)


def answers() -> BinaryIO:
  """Returns the stream for answers; printed text goes to standard error."""
  result = os.fdopen(os.dup(1), 'wb')
  os.dup2(2, 1)  # Printed text must not get between the answers.
  return result


def begin_child() -> BinaryIO:
  """Prepares a child process, and returns its stream for answers (`answers`).

  From now on the process ends when its parent ends. If memory runs out, Linux
  ends the child rather than the parent.
  """
  result = answers()
  end_with_parent()
  volunteer_for_oom()
  return result


def end_with_parent(parent: int | None = None) -> None:
  """Makes this process end as soon as its parent has ended.

  A thread watches the number of the parent process. The end of the standard
  input is not enough, because other processes that the parent forked may hold
  the pipe open. Linux's signal PR_SET_PDEATHSIG is not right either, because it
  comes when the thread that started this process ends.

  Args:
    parent: Number of the parent process, if it was noted before this process
      began, because the parent may have ended since. None means the present
      parent.
  """
  parent = parent or os.getppid()

  def watch() -> None:
    while os.getppid() == parent:
      time.sleep(_WATCH_S)
    os._exit(0)

  threading.Thread(target=watch, daemon=True).start()


def end_with_input() -> None:
  """Makes this process end with its parent or with its standard input."""
  end_with_parent()

  def watch() -> None:
    while True:
      select.select([sys.stdin], [], [])
      if not os.read(sys.stdin.fileno(), 1):
        os._exit(0)

  threading.Thread(target=watch, daemon=True).start()


def volunteer_for_oom() -> None:
  """Makes Linux end this process, not its parent, if memory runs out."""
  try:
    with open('/proc/self/oom_score_adj', 'w', encoding='ascii') as file:
      file.write('1000')
  except OSError:  # Not Linux, or not allowed. The kernel then chooses.
    return
