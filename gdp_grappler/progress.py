"""What a program is doing, said where it is done, shown by who listens.

As with logging, whoever works says so to nobody in particular: without a
listener, as in a user's program, nothing is kept and nothing is printed.
"""

from __future__ import annotations

import contextlib
from typing import Callable, Iterable, Iterator, Protocol, TypeVar

_Item = TypeVar('_Item')
_Result = TypeVar('_Result')


class Listener(Protocol):
  """Whoever shows it."""

  def doing(self, what: str) -> None:
    """Something begins, and what was done before is over; '' for nothing."""

  def reached(self, share: float, detail: str) -> None:
    """So much of it is done, from 0 to 1."""

  def make_room(self) -> None:
    """Somebody else is about to print a line."""


# The last one hears; None hears nothing.
_listeners: list[Listener | None] = []


@contextlib.contextmanager
def heard_by(listener: Listener | None) -> Iterator[None]:
  """In the context this one alone is told; None for nobody."""
  _listeners.append(listener)
  try:
    yield
  finally:
    _listeners.pop()


def is_heard() -> bool:
  """Whether somebody has said who listens, be it nobody."""
  return bool(_listeners)


def doing(what: str) -> None:
  """Says what begins.

  Args:
    what: Such as 'reading graph.pb'; a clause without a stop.
  """
  listener = _listener()
  if listener is not None:
    listener.doing(what)


def reached(share: float, detail: str = '') -> None:
  """Says how far it has come.

  Args:
    share: From 0 to 1.
    detail: What else there is to know, such as the best so far.
  """
  listener = _listener()
  if listener is not None:
    listener.reached(share, detail)


def of_each(what: str, items: Iterable[_Item], work: Callable[[_Item], _Result],
            name: Callable[[_Item], str] = str) -> list[_Result]:
  """Works on one item after the other, and says how far it is.

  What the work itself says is not heard: it would take the place of that.

  Args:
    what: Such as 'measuring'.
    items: What to work on.
    work: Called with each.
    name: What to call an item.

  Returns:
    What the work returned, in the order of the items.
  """
  doing(what)
  rest, results = list(items), []
  for number, item in enumerate(rest):
    reached(number / len(rest), f'{number + 1} of {len(rest)}: {name(item)}')
    with heard_by(None):
      results.append(work(item))
  return results


def make_room() -> None:
  """Says that another line is about to be printed on the way."""
  listener = _listener()
  if listener is not None:
    listener.make_room()


def idle() -> None:
  """Says that nothing is being done: what follows is for the user to read."""
  doing('')


def _listener() -> Listener | None:
  return _listeners[-1] if _listeners else None
