"""Shares work out evenly by what a policy prefers.

A policy that finds one device a little better for every unit says one device
for all. Which units it would send elsewhere first is in its odds all the same:
each device gets a handicap, the same for all units, until those whose best
device it is take as long as those of the others. An auction, as for transport
problems (D. P. Bertsekas, "The auction algorithm", 1988), with step sizes that
fall instead of exact prices.
"""

from __future__ import annotations

import numpy as np

_STEPS, _FIRST, _LAST = 150, 1., 1e-3
# A device on which everything takes this much longer than on the fastest gets
# no share of its own.
_FAR_SLOWER = 4.


def evened(logits: np.ndarray, seconds: np.ndarray) -> np.ndarray:
  """float64 [S, D], logits less the handicaps that balance best.

  Args:
    logits: float [S, D]; -inf where a set may not be.
    seconds: float64 [S, D], what each set takes.
  """
  takers = _takers(logits, seconds)
  if takers.sum() < 2:
    return logits
  handicaps, best = np.zeros(logits.shape[1]), np.zeros(logits.shape[1])
  least = np.inf
  scale = max(float(logits[np.isfinite(logits)].std()), 1e-6)
  for step in _FIRST * (_LAST / _FIRST)**(np.arange(_STEPS) / (_STEPS - 1)):
    load = _load(logits - handicaps, seconds)
    if load[takers].max() < least:
      least, best = load[takers].max(), handicaps.copy()
    mean = max(float(load[takers].mean()), 1e-300)
    handicaps[takers] += step * scale * np.clip(load[takers] / mean - 1, -1, 1)
  return logits - best


def _load(logits: np.ndarray, seconds: np.ndarray) -> np.ndarray:
  """float64 [D], what the sets take whose best device each is."""
  said = logits.argmax(axis=1)
  return np.bincount(said, seconds[np.arange(len(said)), said], logits.shape[1])


def _takers(logits: np.ndarray, seconds: np.ndarray) -> np.ndarray:
  """bool [D], devices that should have a share."""
  free = np.isfinite(logits).all(axis=1)
  if not free.any():
    return np.zeros(logits.shape[1], bool)
  total = seconds[free].sum(axis=0)
  return total <= _FAR_SLOWER * max(float(total.min()), 1e-300)
