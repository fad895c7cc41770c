"""Placements that a policy's odds may stand for, the most likely first.

Drawn unit by unit, neighbours part nearly everywhere. So where units make up
larger sets (`coarsening.nested`), these are placed as a whole, too, by what the
policy says of their units; and so that the work is shared out evenly
(`balanced_odds`), as a policy that is undecided everywhere says one device for
all.
"""

from __future__ import annotations

from typing import Sequence

import numpy as np

from gdp_grappler.graph import coarsening
from gdp_grappler.graph import op_graph
from gdp_grappler.placers.policy import balanced_odds

# Beside the most likely placement, of a policy that decides about nothing but
# its units; of one that has larger sets, so many of each size.
_NUM_SAMPLES, _OF_EACH_SIZE = 15, 1


def sizes(kind: str, graph: op_graph.OpGraph, allowed: np.ndarray,
          op_seconds: np.ndarray) -> list[np.ndarray]:
  """int [N] each, sets of ops, from large ones to a policy's M units.

  Args:
    kind: Of the units, as of `coarsening.units`.
    graph: N ops in G groups.
    allowed: bool [G, D].
    op_seconds: float64 [N, D].
  """
  if kind == coarsening.NESTED:
    return coarsening.nested(graph, allowed, op_seconds)
  return [coarsening.units(kind, graph, allowed, op_seconds)]


def decisions(logits: np.ndarray, sets: Sequence[np.ndarray],
              op_seconds: np.ndarray, seed: int) -> np.ndarray:
  """int [K, M], devices of units, the most likely first.

  Of each size of sets: the most likely, the even one, one between them, and one
  that is drawn.

  Args:
    logits: float [M, D]; -inf where a unit may not be.
    sets: Of `sizes`.
    op_seconds: float64 [N, D].
    seed: Of what is drawn.
  """
  rng = np.random.default_rng(seed)
  likeliest = logits.argmax(axis=1)[None]
  if len(sets) == 1:
    return np.concatenate([likeliest, _sample(logits, _NUM_SAMPLES, rng)])
  rows, first = [likeliest], np.unique(sets[-1], return_index=True)[1]
  for of_op in sets:
    of_unit = np.unique(of_op[first], return_inverse=True)[1].reshape(-1)
    together = _together(logits, of_unit)
    even = balanced_odds.evened(together, _seconds(op_seconds, of_op))
    said = np.stack([
        together.argmax(axis=1), ((together + even) / 2).argmax(axis=1),
        even.argmax(axis=1)
    ])
    rows += [said[:, of_unit], _sample(even, _OF_EACH_SIZE, rng)[:, of_unit]]
  return np.concatenate(rows)


def _seconds(op_seconds: np.ndarray, sets: np.ndarray) -> np.ndarray:
  """float64 [S, D], what ops [N, D] of each set take."""
  return np.stack([np.bincount(sets, column) for column in op_seconds.T],
                  axis=1)


def _together(logits: np.ndarray, sets: np.ndarray) -> np.ndarray:
  """float64 [S, D], the mean of what units [M, D] of each set say."""
  said = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
  sums = np.zeros((int(sets.max()) + 1, logits.shape[1]))
  np.add.at(sums, sets, said)
  return sums / np.bincount(sets)[:, None]


def _sample(logits: np.ndarray, count: int,
            rng: np.random.Generator) -> np.ndarray:
  """int [count, M], devices drawn independently (the Gumbel trick)."""
  noise = rng.gumbel(size=(count, *logits.shape))
  return (logits + noise).argmax(axis=-1)
