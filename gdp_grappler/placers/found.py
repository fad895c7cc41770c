"""Placements that were priced, and which of them lack memory only."""

from __future__ import annotations

from typing import Iterable

import numpy as np

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.placers import annealing
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import relief
from gdp_grappler.placers import single_device

# Proposals that are made to fit: the fastest, and those that exceed least.
_MENDED = 3


class Found:
  """Placements of the groups that were priced, each once."""

  def __init__(self, problem: placer_lib.Problem) -> None:
    self._problem = problem
    self._rows: dict[bytes, int] = {}
    self._devices: list[np.ndarray] = []
    self._prices: evaluator_lib.Prices | None = None

  @property
  def prices(self) -> evaluator_lib.Prices:
    """[K]; there has to be one."""
    assert self._prices is not None
    return self._prices

  @property
  def devices(self) -> np.ndarray:
    """int32 [K, G], in the order of `prices`."""
    return np.stack(self._devices)

  @property
  def best(self) -> np.ndarray:
    """int32 [G]."""
    return self._devices[self.prices.best()]

  def ranked(self, most: int) -> np.ndarray:
    """int32 [at most `most`, G], the best by price, the best first."""
    return np.stack([self._devices[k] for k in self.prices.ranking()[:most]])

  @property
  def fits(self) -> bool:
    return bool(self.prices.valid.any())

  @property
  def enough(self) -> bool:
    """Whether none would be faster than the best if there were more memory."""
    seconds, valid = self.prices.seconds, self.prices.valid_seconds.min()
    return self.fits and bool((seconds >= valid).all())

  def knows(self, row: np.ndarray) -> bool:
    """Whether a placement, int [G], was priced."""
    return np.asarray(row, np.int32).tobytes() in self._rows

  def see(self, devices: Iterable[np.ndarray]) -> evaluator_lib.Prices:
    """The prices [K] of placements, K times int [G]; those new are asked."""
    rows = [np.asarray(row, np.int32) for row in devices]
    keys = [row.tobytes() for row in rows]
    fresh = {key: row for key, row in zip(keys, rows) if key not in self._rows}
    if fresh:
      prices = self._problem.evaluator.price_groups(
          self._problem.graph, np.stack(list(fresh.values())))
      self._prices = (prices if self._prices is None else
                      self._prices.followed_by(prices))
      for key, row in fresh.items():
        self._rows[key] = len(self._devices)
        self._devices.append(row)
    return self.prices[np.array([self._rows[key] for key in keys], int)]

  def overfull(self, most: int) -> np.ndarray:
    """int32 [K, G], what does not fit but is faster than all that does.

    Of that the fastest, and what exceeds memories least, at most so many each.
    """
    seconds, overflow = self.prices.seconds, self.prices.overflow_bytes
    faster = np.flatnonzero(seconds < self.prices.valid_seconds.min())
    chosen = dict.fromkeys([
        *faster[np.argsort(seconds[faster], kind='stable')][:most],
        *faster[np.argsort(overflow[faster], kind='stable')][:most]
    ])
    return np.array([self._devices[k] for k in chosen],
                    np.int32).reshape(-1, self._problem.graph.num_groups)

  def mend(self) -> None:
    """Makes what would be faster if there were more memory fit (`relief`)."""
    self.see(relief.Relief(self._problem).fitted(self.overfull(_MENDED)))

  def settled(self) -> placement_lib.Placement:
    """The best, which is no worse than one device and fits if that can be.

    Each device alone is looked at; what would be faster if there were more
    memory is made to fit; and if nothing fits even so, and prices cost little,
    what a local search makes of the best is looked at.
    """
    self.see(single_device.of_each_kind(self._problem))
    if not self.enough:
      self.mend()
    if not self.fits and self._problem.evaluator.simulated:
      self.see([annealing.relieved(self._problem, self.best)])
    return placement_lib.from_groups(self._problem.graph, self.best,
                                     self._problem.cluster)
