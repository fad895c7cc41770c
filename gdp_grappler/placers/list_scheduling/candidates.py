"""The best of several proposals by price."""

from __future__ import annotations

from concurrent import futures
import dataclasses
import os
from typing import Callable, Sequence

import numpy as np

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import local_search
from gdp_grappler.placers import placer as placer_lib

# What a round of proposals may overflow before the next one has less memory.
_ROUNDS = 4
_MARGIN = 0.95


@dataclasses.dataclass(frozen=True, eq=False)
class _Priced:
  """Of K proposals, the best; its devices [N] and its price.

  The overflow is what is too much for the memories, in bytes.
  """

  devices: np.ndarray
  step_time_s: float
  fits: bool
  overflow: float

  def rank(self):
    return not self.fits, self.overflow, self.step_time_s


Proposer = Callable[[np.ndarray], np.ndarray]


def best(problem: placer_lib.Problem, proposers: Sequence[Proposer],
         relieve: bool = True) -> placement_lib.Placement:
  """Asks every proposer and keeps what is cheapest.

  What fits into memory beats what does not, and of what does not, the least
  overflow wins. If nothing fits, the proposers are asked again with the
  capacities that the fastest one exceeded made smaller; if that does not help,
  a local search moves groups until the best one fits.

  Args:
    problem: Has the price.
    proposers: From capacities [P] in bytes to devices of groups, int [G].
    relieve: Whether to ask the local search, too.
  """
  pool_bytes = problem.cluster.pool_bytes.astype(float)
  winner = None
  for _ in range(_ROUNDS):
    found, fastest_peaks = _round(problem, proposers, pool_bytes)
    if winner is None or found.rank() < winner.rank():
      winner = found
    if winner.fits:
      break
    over = fastest_peaks > problem.cluster.pool_bytes
    if not over.any():
      break
    excess = np.maximum(fastest_peaks / problem.cluster.pool_bytes, 1)
    pool_bytes = pool_bytes / excess * np.where(over, _MARGIN, 1)
  if not winner.fits and relieve:
    first = np.unique(problem.graph.groups, return_index=True)[1]
    return placement_lib.from_groups(
        problem.graph, local_search.relieved(problem, winner.devices[first]),
        problem.cluster)
  return placement_lib.Placement(winner.devices, problem.cluster)


def _round(problem, proposers, pool_bytes) -> tuple[_Priced, np.ndarray]:
  """The best proposal, and the peaks [P] of the fastest."""
  with futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    groups = list(pool.map(lambda propose: propose(pool_bytes), proposers))
  different = {devices.tobytes(): devices for devices in groups}
  devices = np.stack(list(different.values()))[:, problem.graph.groups]
  seconds, peaks, fits = _prices(problem, devices)
  overflow = np.maximum(peaks - problem.cluster.pool_bytes, 0).sum(axis=1)
  first = min(range(len(devices)), key=lambda i:
              (not fits[i], overflow[i], seconds[i], i))
  winner = _Priced(devices[first], float(seconds[first]), bool(fits[first]),
                   float(overflow[first]))
  return winner, peaks[int(seconds.argmin())]


def _prices(problem, devices):
  """Seconds [K], peaks [K, P] and whether all is well [K]."""
  if hasattr(problem.evaluator, 'step_times'):
    seconds, peaks = problem.evaluator.step_times(problem.graph, devices)
    fits = np.isfinite(seconds) & (peaks
                                   <= problem.cluster.pool_bytes).all(axis=1)
    return seconds, peaks, fits
  prices = problem.evaluator.evaluate_many(problem.graph, devices)
  return (np.array([p.step_time_s for p in prices]),
          np.array([p.peak_bytes for p in prices]),
          np.array([p.valid for p in prices]))
