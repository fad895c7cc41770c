"""The best of several proposals by price."""

from __future__ import annotations

from concurrent import futures
import dataclasses
import os
from typing import Callable, Sequence

import numpy as np

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.placers import annealing
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import single_device

# What a round of proposals may overflow before the next one has less memory.
_ROUNDS = 4
_MARGIN = 0.95

Proposer = Callable[[np.ndarray], np.ndarray]


def best(problem: placer_lib.Problem, proposers: Sequence[Proposer],
         beyond: bool = True) -> placement_lib.Placement:
  """Asks every proposer and keeps what is cheapest.

  What fits into memory beats what does not, and of what does not, the least
  overflow wins. If nothing fits, the proposers are asked again with the
  capacities that the fastest one exceeded made smaller.

  Args:
    problem: Has the price.
    proposers: From capacities [P] in bytes to devices of groups, int [G].
    beyond: Whether to look beyond them: at each device alone and, if nothing
      fits even so, at what a local search makes of the best.
  """
  room = problem.cluster.pool_bytes
  pool_bytes = room.astype(float)
  winner = None
  for _ in range(_ROUNDS):
    found, fastest_peaks = _round(problem, proposers, pool_bytes)
    if winner is None or found.key < winner.key:
      winner = found
    if winner.fits or (fastest_peaks <= room).all():
      break
    excess = np.maximum(fastest_peaks / room, 1)
    pool_bytes = pool_bytes / excess * np.where(fastest_peaks > room, _MARGIN,
                                                1)
  assert winner is not None  # There is at least one round.
  groups = winner.groups
  if beyond:
    alone = _best_of(problem, single_device.on_each(problem))
    best_found = min(winner, alone, key=lambda found: found.key)
    groups = best_found.groups
    if not best_found.fits:
      groups = annealing.relieved(problem, groups)
  return placement_lib.from_groups(problem.graph, groups, problem.cluster)


@dataclasses.dataclass(frozen=True, eq=False)
class _Winner:
  """Of some proposals, the best: int [G], and where it ranks."""

  groups: np.ndarray
  key: evaluator_lib.Key
  fits: bool


def _round(problem: placer_lib.Problem, proposers: Sequence[Proposer],
           pool_bytes: np.ndarray) -> tuple[_Winner, np.ndarray]:
  """The best proposal, and the peaks [P] of the fastest."""
  with futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    groups = list(pool.map(lambda propose: propose(pool_bytes), proposers))
  different = list({devices.tobytes(): devices for devices in groups}.values())
  prices = problem.evaluator.price_groups(problem.graph, np.stack(different))
  return (_winner(np.stack(different),
                  prices), prices.peak_bytes[prices.seconds.argmin()])


def _best_of(problem: placer_lib.Problem, groups: np.ndarray) -> _Winner:
  """Of int [K, G]."""
  return _winner(groups, problem.evaluator.price_groups(problem.graph, groups))


def _winner(groups: np.ndarray, prices: evaluator_lib.Prices) -> _Winner:
  best = prices.best()
  return _Winner(groups[best], prices.keys()[best], bool(prices.valid[best]))
