"""Functions that several searches by moves use.

A set of vertices that moves grows from one vertex along edges. Heavy edges are
preferred, because vertices that exchange many bytes should stay on one device.
"""

from __future__ import annotations

from typing import Iterable

import numpy as np

# Probability that a set joins a vertex over the lightest edge. The probability
# grows to 1 over the heaviest edge.
_LEAST_EAGERNESS = 0.2


def eagerness(size: np.ndarray) -> np.ndarray:
  """float64 [E], probabilities that a set joins a vertex over each edge.

  Args:
    size: [E], bytes of each edge; only their order counts.
  """
  rank = np.argsort(np.argsort(size, kind='stable'), kind='stable')
  return _LEAST_EAGERNESS + (1 - _LEAST_EAGERNESS) * (rank + 1) / max(
      len(rank), 1)


def seed(rng: np.random.Generator) -> int:
  """A random seed for another generator."""
  return int(rng.integers(1 << 62))


def unions(current: np.ndarray,
           changed: Iterable[np.ndarray]) -> list[np.ndarray]:
  """Unions of moves: of the first two, of the first three, and so on.

  Args:
    current: int [V], the placement before the moves.
    changed: J of int [V], the placement after each move, the best first. If two
      moves change the same vertex, the better move counts.
  """
  result, union = [], current
  for index, row in enumerate(changed):
    union = np.where(union == current, row, union)
    if index:
      result.append(union)
  return result
