"""Chooses the function that decides in how many parts a table is made.

The user's scopes come first, from the innermost to the outermost. The function
of the whole program comes last.
"""

from __future__ import annotations

import threading
from typing import Callable

# Name of a layer, shape of its table, bytes of an element, why the table has to
# be whole or '', scopes and name of the table, function from the wanted number
# of parts to the number that is made -> wanted number of parts. 1 is whole, 0
# means no decision.
Decider = Callable[[str, tuple[int, ...], int, str, str, Callable[[int], int]],
                   int]


class _Scopes(threading.local):

  def __init__(self) -> None:
    super().__init__()
    self.stack: list[Decider] = []
    # Names of the layers of all tables that are made while there are scopes.
    self.made: list[str] = []


_scopes = _Scopes()
_of_program: list[Decider] = []


def decide_by(decider: Decider) -> None:
  """Sets the program's function, which decides if no scope has decided."""
  _of_program[:] = [decider]


def parts(layer: str, shape: tuple[int, ...], itemsize: int, whole_because: str,
          path: str = '', made_for: Callable[[int], int] = int) -> int:
  """Returns the wanted number of parts of a table; 1 for a whole table.

  Args:
    layer: Name of the table's layer.
    shape: Shape of the table.
    itemsize: Bytes of an element.
    whole_because: Why the table has to be whole; '' if it may be in parts. A
      deciding function that wants parts anyway raises an error or tells the
      user.
    path: Scopes and name of the table, as far as the layer knows them.
    made_for: Number of parts that are made for a wanted number. The number is
      smaller if the table has few rows.
  """
  if _scopes.stack:
    _scopes.made.append(layer)
  for decider in [*reversed(_scopes.stack), *_of_program]:
    count = decider(layer, shape, itemsize, whole_because, path or layer,
                    made_for)
    if count:
      return 1 if whole_because else count
  return 1


def enter(decider: Decider) -> None:
  """Adds a function that decides for this thread, before all others."""
  _scopes.stack.append(decider)


def leave(decider: Decider) -> None:
  """Removes a function that `enter` added."""
  _scopes.stack.remove(decider)
  if not _scopes.stack:
    _scopes.made.clear()


def made() -> tuple[str, ...]:
  """Returns the layers of tables that this thread has made in its scopes.

  The list begins when the outermost scope begins, and is in order of time.
  """
  return tuple(_scopes.made)
