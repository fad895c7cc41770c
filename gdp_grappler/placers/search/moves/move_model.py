"""The interface of models that choose the moves which a search prices."""

from __future__ import annotations

from typing import Protocol, Sequence

import numpy as np


class MoveModel(Protocol):
  """Chooses the moves to price among the moves that a search draws.

  An object serves one search at a time.

  Attributes:
    draws: Moves that the search draws for each move that it prices.
  """

  draws: int

  def choose(self, incumbent: np.ndarray, candidates: np.ndarray,
             kinds: Sequence[str], count: int) -> np.ndarray:
    """int [count], different indices of the moves to price.

    Args:
      incumbent: int [G], the placement before the moves.
      candidates: int [K, G], placements after each move.
      kinds: [K], kinds of the moves (`Moves.kinds`).
      count: Moves to price, at most K.
    """

  def set_priorities(self, priorities: np.ndarray | None) -> None:
    """Sets the order in which ops run from now on.

    Args:
      priorities: float64 [N]; None for first in, first out.
    """
