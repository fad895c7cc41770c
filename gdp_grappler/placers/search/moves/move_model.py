"""What a search may ask before it prices moves."""

from __future__ import annotations

from typing import Protocol, Sequence

import numpy as np


class MoveModel(Protocol):
  """Says which of the moves from a placement are worth pricing.

  For one search at a time.

  Attributes:
    draws: How many moves to draw for each that is priced.
  """

  draws: int

  def amended(self, incumbent: np.ndarray, candidates: np.ndarray,
              kinds: Sequence[str], rng: np.random.Generator) -> Sequence[str]:
    """What kinds of moves they are, some of which now lead elsewhere.

    Args:
      incumbent: int [G], where the moves are from.
      candidates: int32 [K, G], where they lead; may be changed in place.
      kinds: [K], by which rule each was drawn (`Moves.kinds`).
      rng: Of the search.
    """

  def choose(self, incumbent: np.ndarray, candidates: np.ndarray,
             kinds: Sequence[str], count: int) -> np.ndarray:
    """int [count], different indices of the moves to price.

    Args:
      incumbent: int [G], where the moves are from.
      candidates: int [K, G], where they lead.
      kinds: [K], as `amended` said.
      count: At most K.
    """

  def ordered(self, priorities: np.ndarray | None) -> None:
    """Hears in which order ops run from now on.

    Args:
      priorities: float64 [N]; None for first in, first out.
    """

  def told(self, gains: np.ndarray) -> None:
    """Hears what the moves chosen last have brought.

    Args:
      gains: float64 [count], by how much better each is than the incumbent, as
        a share of the step in which the search began; not positive where it is
        not, infinite where the incumbent cannot run.
    """
