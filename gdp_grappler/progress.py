"""Progress of a program: code reports it, and a listener shows it.

Code reports progress to the current listener, as code logs to the current
handlers. Without a listener, as in a user's program, nothing is printed.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Callable, Iterable, Iterator, Protocol, TypeVar

from gdp_grappler import errors

_Item = TypeVar('_Item')
_Result = TypeVar('_Result')


class Listener(Protocol):
  """Shows progress."""

  def doing(self, what: str) -> None:
    """Shows that work begins and earlier work is over; '' means no work."""

  def reached(self, share: float, detail: str) -> None:
    """Shows the share of the work that is done, from 0 to 1."""

  def make_room(self) -> None:
    """Clears the terminal's last line, because code is about to print."""


# The last entry is the current listener; None means no listener.
_listeners: list[Listener | None] = []


@contextlib.contextmanager
def heard_by(listener: Listener | None) -> Iterator[None]:
  """Makes a listener the current one in the context; None for no listener."""
  _listeners.append(listener)
  try:
    yield
  finally:
    _listeners.pop()


def is_heard() -> bool:
  """Whether the program is in a context of `heard_by`, even one of None."""
  return bool(_listeners)


def doing(what: str) -> None:
  """Reports that work begins.

  Args:
    what: The work as a clause without a full stop, such as 'reading graph.pb'.
  """
  listener = _listener()
  if listener is not None:
    listener.doing(what)


def reached(share: float, detail: str = '') -> None:
  """Reports the share of the work that is done.

  Args:
    share: From 0 to 1.
    detail: Further text for the user, such as the best result so far.
  """
  listener = _listener()
  if listener is not None:
    listener.reached(share, detail)


def of_each(what: str, items: Iterable[_Item], work: Callable[[_Item], _Result],
            name: Callable[[_Item], str] = str) -> list[_Result]:
  """Calls a function for one item after the other, and reports the progress.

  Progress that the function itself reports is not shown, because it would
  replace the progress over the items.

  Args:
    what: Name of the work, such as 'measuring'.
    items: The items.
    work: Function of an item.
    name: Function that returns the user's name of an item.

  Returns:
    The results of the function, in the order of the items.
  """
  doing(what)
  rest, results = list(items), []
  for number, item in enumerate(rest):
    reached(number / len(rest), f'{number + 1} of {len(rest)}: {name(item)}')
    with heard_by(None):
      results.append(work(item))
  return results


def make_room() -> None:
  """Reports that the caller is about to print a line."""
  listener = _listener()
  if listener is not None:
    listener.make_room()


def has_stderr() -> bool:
  """Whether standard error is open.

  A program may have replaced `sys.stderr` by an object that only has `write`
  and `flush`.
  """
  return sys.stderr is not None and not getattr(sys.stderr, 'closed', False)


def say(line: str) -> None:
  """Prints one line on standard error.

  The line is not the result of the program. So if standard error is closed or
  full, or if nobody reads it, the line is dropped and the program goes on.
  """
  if not has_stderr():
    return
  make_room()
  text = errors.one_line(line)
  # A stream of the program may raise any exception.
  with contextlib.suppress(Exception):
    try:
      print(text, file=sys.stderr, flush=True)
    except UnicodeEncodeError:
      plain = text.encode('ascii', 'backslashreplace').decode()
      print(plain, file=sys.stderr, flush=True)


def silent(line: str) -> None:
  """Drops a line, where another caller would `say` it."""
  del line


def idle() -> None:
  """Reports that no work is being done, such as before output is printed."""
  doing('')


def _listener() -> Listener | None:
  return _listeners[-1] if _listeners else None
