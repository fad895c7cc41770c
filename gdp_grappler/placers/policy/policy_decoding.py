"""Decodes a policy's odds into placements, the most likely one first.

If the device of each unit is drawn independently, nearly all neighbours are
separated. So if units form larger sets (`coarsening.nested`), the decoder also
places each set as a whole, by the mean log probabilities of its units. If the
policy is undecided everywhere, all units have the same most likely device. So
with larger sets the decoder also balances the work of the devices
(`balanced_odds`).
"""

from __future__ import annotations

from typing import Sequence

import numpy as np

from gdp_grappler.graph import coarsening
from gdp_grappler.graph import op_graph
from gdp_grappler.placers.policy import balanced_odds

# Number of samples of a policy without larger sets, beside the most likely
# placement.
_NUM_SAMPLES = 15
# Number of samples for each size of sets, if the policy has larger sets.
_SAMPLES_PER_SIZE = 1


def sizes(kind: str, graph: op_graph.OpGraph, allowed: np.ndarray,
          op_seconds: np.ndarray) -> list[np.ndarray]:
  """int [N] each, the set of each op: first large sets, last the M units.

  Args:
    kind: Kind of the units; see `coarsening.units`.
    graph: N ops in G groups.
    allowed: bool [G, D], devices that each group may have.
    op_seconds: float64 [N, D], seconds of each op on each device.
  """
  if kind == coarsening.NESTED:
    return coarsening.nested(graph, allowed, op_seconds)
  return [coarsening.units(kind, graph, allowed, op_seconds)]


def decisions(logits: np.ndarray, sets: Sequence[np.ndarray],
              op_seconds: np.ndarray, seed: int) -> np.ndarray:
  """int [K, M], placements of units, the most likely one first.

  For each of several sizes of sets there are the most likely placement, the
  balanced placement, one between the two, and a sample. For a single size there
  are the most likely placement and samples.

  Args:
    logits: float [M, D]; -inf for a device that a unit may not have.
    sets: Result of `sizes`.
    op_seconds: float64 [N, D], seconds of each op on each device.
    seed: Seed of the samples.
  """
  rng = np.random.default_rng(seed)
  likeliest = logits.argmax(axis=1)[None]
  if len(sets) == 1:
    return np.concatenate([likeliest, _sample(logits, _NUM_SAMPLES, rng)])
  rows, first = [likeliest], np.unique(sets[-1], return_index=True)[1]
  for of_op in sets:
    of_unit = np.unique(of_op[first], return_inverse=True)[1].reshape(-1)
    means = _set_means(logits, of_unit)
    balanced = balanced_odds.balance(means, _seconds(op_seconds, of_op))
    chosen = np.stack([
        means.argmax(axis=1), ((means + balanced) / 2).argmax(axis=1),
        balanced.argmax(axis=1)
    ])
    samples = _sample(balanced, _SAMPLES_PER_SIZE, rng)
    rows += [chosen[:, of_unit], samples[:, of_unit]]
  return np.concatenate(rows)


def _seconds(op_seconds: np.ndarray, sets: np.ndarray) -> np.ndarray:
  """float64 [S, D], seconds of all ops of each set on each device."""
  return np.stack([np.bincount(sets, column) for column in op_seconds.T],
                  axis=1)


def _set_means(logits: np.ndarray, sets: np.ndarray) -> np.ndarray:
  """float64 [S, D], mean log probability of the units of each set."""
  log_odds = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
  sums = np.zeros((int(sets.max()) + 1, logits.shape[1]))
  np.add.at(sums, sets, log_odds)
  return sums / np.bincount(sets)[:, None]


def _sample(logits: np.ndarray, count: int,
            rng: np.random.Generator) -> np.ndarray:
  """int [count, M], devices drawn independently (the Gumbel trick)."""
  noise = rng.gumbel(size=(count, *logits.shape))
  return (logits + noise).argmax(axis=-1)
