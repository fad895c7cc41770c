"""Balances the work of devices by the odds of a policy.

A policy may prefer one device a little for every unit. The most likely
placement then uses only this device. But the odds tell which units prefer the
device the least. So each device gets a handicap, which is subtracted from the
logits of all units. The handicaps change until all devices have the same work.
This is an auction, as for transport problems (D. P. Bertsekas, "The auction
algorithm", 1988). The handicaps are the prices of the auction, but they change
less from round to round.
"""

from __future__ import annotations

import numpy as np

# Rounds of the auction.
_ROUNDS = 150
# Largest change of a handicap in the first round, in standard deviations of the
# logits. It falls geometrically to `_LAST`.
_FIRST = 1.
# The same in the last round.
_LAST = 1e-3
# A device takes no part in the balance if the sets that may be on any device
# take longer there than on the fastest device by more than this factor.
_FAR_SLOWER = 4.


def balance(logits: np.ndarray, seconds: np.ndarray) -> np.ndarray:
  """float64 [S, D], logits less the handicaps that balance the work best.

  Args:
    logits: float [S, D]; -inf for a device that a set may not have.
    seconds: float64 [S, D], seconds of each set on each device.
  """
  workers = _workers(logits, seconds)
  if workers.sum() < 2:
    return logits
  handicaps, best = np.zeros(logits.shape[1]), np.zeros(logits.shape[1])
  least = np.inf
  scale = max(float(logits[np.isfinite(logits)].std()), 1e-6)
  for change in _FIRST * (_LAST / _FIRST)**(np.arange(_ROUNDS) / (_ROUNDS - 1)):
    load = _load(logits - handicaps, seconds)
    if load[workers].max() < least:
      least, best = load[workers].max(), handicaps.copy()
    mean = max(float(load[workers].mean()), 1e-300)
    handicaps[workers] += change * scale * np.clip(load[workers] / mean - 1, -1,
                                                   1)
  return logits - best


def _load(logits: np.ndarray, seconds: np.ndarray) -> np.ndarray:
  """float64 [D], seconds of the sets for which a device is the most likely."""
  device = logits.argmax(axis=1)
  return np.bincount(device, seconds[np.arange(len(device)), device],
                     logits.shape[1])


def _workers(logits: np.ndarray, seconds: np.ndarray) -> np.ndarray:
  """bool [D], devices that take part in the balance."""
  free = np.isfinite(logits).all(axis=1)
  if not free.any():
    return np.zeros(logits.shape[1], bool)
  total = seconds[free].sum(axis=0)
  return total <= _FAR_SLOWER * max(float(total.min()), 1e-300)
