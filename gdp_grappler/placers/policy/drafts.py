"""Drafts: placements with which `gdp_policy` begins.

Cheap placers propose many candidates: maps of coordinates, cuts by METIS, and
schedules of list schedulers. A price is a whole simulation, so a sweep over the
ops first estimates the step of each candidate (`MoveDescriber.estimates`). The
candidates with the shortest estimates become drafts, and some of each source in
any case, because estimates are inexact. Placements on one device are drafts,
too.
"""

from __future__ import annotations

import itertools
from typing import Iterable, Iterator, Sequence

import numpy as np

from gdp_grappler import deadlines
from gdp_grappler import extras
from gdp_grappler.cluster import one_device
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.coordinates import structured
from gdp_grappler.placers.list_scheduling import candidates
from gdp_grappler.placers.list_scheduling import proposals
from gdp_grappler.placers.partitioning import metis
from gdp_grappler.placers.policy import policy_config
from gdp_grappler.placers.search import priced_placements
from gdp_grappler.placers.search.moves import move_scoring

_METIS = 'pymetis'
# Sources of drafts. Placements on one device have none.
MAPS = 'maps of gdp_policy'
CUTS = 'cuts of gdp_policy'
SCHEDULES = 'schedules of gdp_policy'

_config = proposals.config
# Configurations of list schedulers in greedy order: each configuration improves
# the most on maps, cuts and the configurations before it
# (docs/results/experiments.md). The fourth one is here because of wide graphs
# that no layers divide, and such graphs took no part in the choice.
_CONFIGS = (
    _config(grain=1., every_device=True, insert=True),
    _config(grain=16.),
    _config(grain=1., transfer_grain=1., ports=True, local_first=True),
    _config(grain=1., transfer_grain=1., in_order=True),
    _config(grain=1., every_device=True, earliest_finish=True,
            local_first=True),
    _config(local_first=True, favourites=True),
    _config(every_device=True, queues=False, insert=True),
    _config(grain=1., halvings=1, ports=True, local_first=True),
    _config(grain=16., parts=1, ports=True, in_order=True, favourites=True),
    _config(grain=1., transfer_grain=10., ports=True, local_first=True),
    _config(grain=1., ports=True, in_order=True, favourites=True),
    _config(parts=1, queues=False, insert=True),
    _config(in_order=True, favourites=True),
    _config(grain=1., every_device=True, earliest_finish=True, local_first=True,
            favourites=True),
    _config(grain=1., parts=4, insert=True),
    _config(grain=1., queues=False, favourites=True),
    _config(ports=True, in_order=True, local_first=True),
    _config(ports=True, local_first=True, favourites=True),
    _config(queues=False, favourites=True),
    _config(parts=4, ports=True, local_first=True),
    _config(grain=16., parts=4),
    _config(grain=4., local_first=True, favourites=True),
    _config(grain=1., ports=True, local_first=True, favourites=True),
    _config(grain=1., local_first=True, favourites=True),
)
# Number of configurations for a large graph (`Proposals.large`).
_NUM_FOR_LARGE = 8


class Drafts:
  """Drafts of one problem.

  Attributes:
    rows: int32 [S, G], different legal placements. First come placements of all
      groups on one device, one for each kind of device. The other drafts
      follow, the shortest estimate first if some candidates became no drafts.
    sources: [S], the source of each draft; '' if all groups are on one device.
  """

  def __init__(self, problem: placer_lib.Problem,
               config: policy_config.PolicyConfig,
               describer: move_scoring.MoveDescriber,
               deadline: deadlines.Deadline = deadlines.NEVER) -> None:
    """Makes the drafts.

    Args:
      problem: G groups.
      config: Numbers of candidates and of drafts.
      describer: Describer of moves of the problem.
      deadline: Moment after which no further cuts or schedules are made.

    Raises:
      InfeasiblePlacementError: the graph cannot be placed on the cluster.
    """
    self._problem, self._config = problem, config
    self._shared = proposals.Proposals(problem.graph, problem.cluster,
                                       problem.busy_seconds, problem.allowed)
    # The configuration of each schedule, and its capacities of memories.
    self._settings: dict[bytes, tuple[proposals.ScheduleConfig,
                                      np.ndarray]] = {}
    alone = one_device.of_each_kind(problem.cluster, problem.allowed,
                                    problem.op_seconds)
    proposed = [
        (MAPS, row) for row in structured.candidates(problem)[:config.maps]
    ]
    if len(problem.cluster.accelerators) > 1:
      proposed += self._cuts_and_schedules(deadline)
    sources, rows = _different([*(('', row) for row in alone), *proposed])
    first = len(alone)
    if len(rows) - first > config.drafts:
      estimates = describer.estimates(alone[0], rows[first:])
      chosen = self._chosen(first + np.argsort(estimates, kind='stable'),
                            sources)
      rows = rows[[*range(first), *chosen]]
      sources = [''] * first + [sources[k] for k in chosen]
    self.rows, self.sources = rows, tuple(sources)

  def with_less_memory(
      self, priced: priced_placements.PricedPlacements, most: int,
      deadline: deadlines.Deadline = deadlines.NEVER) -> np.ndarray:
    """int32 [at most `most`, G], schedules that are made again in less memory.

    A list scheduler only estimates how full a memory is. So a schedule may
    overflow a memory. If this schedule is faster than all placements that fit,
    it is made again with less of this memory. The fastest schedules come first.

    Args:
      priced: Placements with their prices, some of them schedules.
      most: Largest number of schedules.
      deadline: Moment after which no further schedules are made.
    """
    prices, devices = priced.prices, priced.devices
    again = np.flatnonzero(~prices.valid
                           & (prices.seconds < prices.valid_seconds.min()))
    rows: list[np.ndarray] = []
    for k in again[np.argsort(prices.seconds[again], kind='stable')]:
      if len(rows) == most or deadline.passed:
        break
      setting = self._settings.pop(devices[k].tobytes(), None)
      if setting is not None:
        filled = prices.peak_bytes[k] / self._problem.cluster.pool_bytes
        rows.append(
            self._scheduled(setting[0], candidates.reduced(setting[1], filled)))
    return np.array(rows, np.int32).reshape(-1, self._problem.graph.num_groups)

  def _chosen(self, ranking: np.ndarray, sources: Sequence[str]) -> list[int]:
    """Candidates that become drafts, in the order of the ranking.

    Args:
      ranking: int [K], indices of the candidates, the shortest estimate first.
      sources: The source of each placement, by its index.
    """
    config, chosen = self._config, set[int]()
    for source in (MAPS, CUTS, SCHEDULES):
      own = [k for k in ranking if sources[k] == source]
      chosen.update(own[:config.drafts_of_each])
    others = [k for k in ranking if k not in chosen]
    chosen.update(others[:max(config.drafts - len(chosen), 0)])
    return [k for k in ranking if k in chosen]

  def _cuts_and_schedules(
      self, deadline: deadlines.Deadline) -> list[tuple[str, np.ndarray]]:
    """Sources and rows int [G]: a cut and a schedule in turn to the deadline.

    After the deadline, one schedule is made in any case if the config allows
    one.
    """
    sources = {CUTS: self._cuts(), SCHEDULES: self._schedules()}
    if deadline.passed:
      del sources[CUTS]
    result: list[tuple[str, np.ndarray]] = []
    while not (result and deadline.passed):
      made = [(source, row) for source, rows in sources.items()
              for row in itertools.islice(rows, 1)]
      if not made:
        break
      result += made
    return result

  def _cuts(self) -> Iterator[np.ndarray]:
    if self._config.cuts and _METIS in extras.of_placers():
      yield from itertools.islice(metis.few_cuts(self._problem),
                                  self._config.cuts)

  def _schedules(self) -> Iterator[np.ndarray]:
    pool_bytes = self._problem.cluster.pool_bytes.astype(float)
    configs = _CONFIGS[:_NUM_FOR_LARGE] if self._shared.large else _CONFIGS
    for config in configs[:self._config.schedules]:
      yield self._scheduled(config, pool_bytes)

  def _scheduled(self, config: proposals.ScheduleConfig,
                 pool_bytes: np.ndarray) -> np.ndarray:
    suited = self._shared.suited(config)
    children = (self._shared.favourites(config.bundles)[0]
                if config.rules.favourites else None)
    row = self._shared.proposer(suited, children)(pool_bytes).astype(np.int32)
    self._settings.setdefault(row.tobytes(), (config, pool_bytes))
    return row


def _different(
    made: Iterable[tuple[str, np.ndarray]]) -> tuple[list[str], np.ndarray]:
  """Sources [K] and placements int32 [K, G] without duplicates, in their order.

  Args:
    made: Sources and placements int [G].
  """
  first: dict[bytes, tuple[str, np.ndarray]] = {}
  for source, row in made:
    row = np.asarray(row, np.int32)
    first.setdefault(row.tobytes(), (source, row))
  return ([source for source, _ in first.values()],
          np.stack([row for _, row in first.values()]))
