"""Who says in how many parts a table is made.

A scope of the user comes first, the innermost before the others; then what the
program was switched to as a whole.
"""

from __future__ import annotations

import threading
from typing import Callable

# Name of a layer, shape of the table, bytes of an element, why it has to be
# whole or '' -> number of parts; 0 for no opinion, 1 for the whole.
Decider = Callable[[str, tuple[int, ...], int, str], int]


class _Scopes(threading.local):

  def __init__(self) -> None:
    super().__init__()
    self.stack: list[Decider] = []


_scopes = _Scopes()
_of_program: list[Decider] = []


def decide_by(decider: Decider) -> None:
  """Lets somebody decide for the whole program, where no scope does."""
  _of_program[:] = [decider]


def parts(layer: str, shape: tuple[int, ...], itemsize: int,
          whole_because: str) -> int:
  """In how many parts a table is wanted; 1 for the whole.

  Args:
    layer: Its layer's name.
    shape: Of the table.
    itemsize: Bytes of an element.
    whole_because: Why it cannot be in parts; '' if it can. Who wants parts all
      the same raises an error, or says why there are none.
  """
  for decider in [*reversed(_scopes.stack), *_of_program]:
    count = decider(layer, shape, itemsize, whole_because)
    if count:
      return 1 if whole_because else count
  return 1


def enter(decider: Decider) -> None:
  """Lets somebody decide for this thread, before all others."""
  _scopes.stack.append(decider)


def leave(decider: Decider) -> None:
  """Ends what `enter` began."""
  _scopes.stack.remove(decider)
