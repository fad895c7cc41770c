"""What parents and children share: messages, and when a child ends.

A message is a pickled object after its length in 8 bytes.
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
_WATCH_S = 1.
_LONGEST = 300  # Characters of an error of somebody else's.


@dataclasses.dataclass(frozen=True)
class Failure:
  """Why something did not run.

  Attributes:
    message: One line.
    fatal: No placement will run.
    lost: A process may be gone, rather than the placement be wrong.
    hung: It took too long.
  """

  message: str
  fatal: bool = False
  lost: bool = False
  hung: bool = False


def cause(error: BaseException) -> str:
  """What TensorFlow says, in one line that is not too long.

  Errors of Python functions that ops call bring where they were raised, which
  is of no use elsewhere.
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
    read: Returns as many bytes as it is asked for, fewer at the end.

  Raises:
    EOFError: the other side is gone.
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
  """Where this process answers; what prints goes to standard error."""
  result = os.fdopen(os.dup(1), 'wb')
  os.dup2(2, 1)  # Whatever prints must not garble the answers.
  return result


def begin_child() -> BinaryIO:
  """Where this process, a child, answers (`answers`).

  From now on the process ends with its parent, and rather than its parent if
  memory runs out.
  """
  result = answers()
  end_with_parent()
  volunteer_for_oom()
  return result


def end_with_parent(parent: int | None = None) -> None:
  """Ends this process when its parent is gone, in whatever it is doing.

  The end of the standard input would say so, but a process that the parent
  forked may hold it open, so the parent's number is watched as well. Linux
  could send a signal (PR_SET_PDEATHSIG), but does when the thread that started
  this process ends.

  Args:
    parent: Its number, if that is known from before this process began: it may
      be gone already. By default whoever is the parent now.
  """
  parent = parent or os.getppid()

  def watch() -> None:
    while os.getppid() == parent:
      time.sleep(_WATCH_S)
    os._exit(0)

  threading.Thread(target=watch, daemon=True).start()


def end_with_input() -> None:
  """`end_with_parent`, and at once when the standard input ends."""
  end_with_parent()

  def watch() -> None:
    while True:
      select.select([sys.stdin], [], [])
      if not os.read(sys.stdin.fileno(), 1):
        os._exit(0)

  threading.Thread(target=watch, daemon=True).start()


def volunteer_for_oom() -> None:
  """Asks Linux to end this process rather than its parent for memory."""
  try:
    with open('/proc/self/oom_score_adj', 'w', encoding='ascii') as file:
      file.write('1000')
  except OSError:  # Not Linux, or not allowed: the kernel's choice stands.
    return
