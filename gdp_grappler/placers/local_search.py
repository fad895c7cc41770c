"""Simulated annealing of the groups' devices.

S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi, "Optimization by Simulated
Annealing", Science 220, 1983: a step that makes a placement slower by d seconds
is taken with probability exp(-d / T), and T falls (the rule is that of
Metropolis et al. 1953). Three things are not in the paper:

* A batch of steps is drawn from one placement and priced at once; of those the
  rule would take, the fastest is taken.
* Steps of one batch that gain are then tried together, best first: what is far
  apart in the graph adds up.
* Kinds of steps that gained of late are drawn more often.
"""

from __future__ import annotations

import dataclasses
import time
from typing import Callable, Sequence

import numpy as np

from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import best_of
from gdp_grappler.placers import moves as moves_lib
from gdp_grappler.placers import placer as placer_lib

DEFAULT_STARTS = ('single_device', 'human_expert', 'metis', 'm_topo', 'm_etf',
                  'heft')
_BLOCK_STARTS = 16
# Divisible by the usual numbers of cores; one number on all machines, so that
# the result does not depend on them.
_BATCH = 16
_UNIONS = 4
# Placements that a default search prices: so many ops in all, which takes two
# cores about 20 s, or so many if a stopwatch prices them.
_PRICED_OPS = 80_000_000
_FEWEST, _MOST, _MEASURED = 500, 20_000, 300
# The same for a search that only has to fit.
_RELIEF_OPS, _RELIEF_MOST = 20_000_000, 4_000
# Shares of the start's step time.
_FIRST_TEMPERATURE, _LAST_TEMPERATURE = 2e-2, 2e-5
# Without gain for this share of the search, it goes on from the best.
_PATIENCE = 0.08
# What an overflow by all of a memory costs, in step times of the start. It
# rises as the temperature falls.
_FIRST_PENALTY, _LAST_PENALTY = 10., 1000.
_MEMORY_OF_KINDS = 0.99
_SHARE_OF_HABIT = 0.3
# How often a further move is added to one: some pay only together.
_COMPOUND = 0.25
_GAIN = 1e-9


class LocalSearchPlacer:
  """Anneals the best of some starts, and returns the best it has priced.

  Starts are placements of other placers, every single device, and blocks of the
  topological order on one accelerator each. A placement that overflows a memory
  is slower in the eyes of the search, by how much it overflows; a valid one is
  always preferred in the end. Steps are priced first in, first out, whatever
  priorities a start has.
  """

  def __init__(self, evaluations: int | None = None,
               starts: Sequence[str] = DEFAULT_STARTS,
               clock: Callable[[], float] = time.monotonic):
    """Sets the limits.

    Args:
      evaluations: Placements to price. By default less for large graphs, such
        that two cores simulate them in about 20 s, and few if a stopwatch
        prices them. `Problem.time_budget_s` may stop the search earlier, the
        sooner the lower the temperature falls; a search that it stops depends
        on the speed of the machine. All starts are priced in any case.
      starts: Placers to start from. Those that cannot take part are left out
        with a notice.
      clock: Seconds since any moment.
    """
    self._evaluations = evaluations
    self._starts = tuple(starts)
    self._clock = clock

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`."""
    begin = self._clock()
    rng = np.random.default_rng(problem.seed)
    search = _Annealing(problem, starting_points(problem, self._starts, rng),
                        rng)
    limit = (evaluations_for(problem)
             if self._evaluations is None else self._evaluations)
    while search.can_move and search.evaluations < limit:
      progress = search.evaluations / limit
      if problem.time_budget_s is not None:
        spent = self._clock() - begin
        if spent >= problem.time_budget_s:
          break
        progress = max(progress, spent / problem.time_budget_s)
      search.step(progress, min(_BATCH, limit - search.evaluations))
    return placement_lib.from_groups(problem.graph, search.best,
                                     problem.cluster)


def relieved(problem: placer_lib.Problem, devices: np.ndarray) -> np.ndarray:
  """int [G], the first placement found that fits, or what overflows least.

  For placers whose proposals all exceed a memory although others may not.

  Args:
    problem: G groups.
    devices: int [G], where to begin.
  """
  search = _Annealing(problem,
                      np.asarray(devices, np.int32)[None],
                      np.random.default_rng(problem.seed))
  limit = min(_RELIEF_OPS // max(problem.graph.num_ops, 1), _RELIEF_MOST)
  while (search.can_move and not search.fits and search.evaluations < limit):
    search.step(search.evaluations / limit, _BATCH)
  return search.best


@dataclasses.dataclass(frozen=True, eq=False)
class _Priced:
  """K placements of the groups, or one.

  Attributes:
    devices: int32 [K, G].
    seconds: float64 [K], step times.
    overflow: float64 [K], what is too much for the memories, as a share of
      them.
  """

  devices: np.ndarray
  seconds: np.ndarray
  overflow: np.ndarray

  def __getitem__(self, k) -> _Priced:
    return _Priced(self.devices[k], self.seconds[k], self.overflow[k])


class _Annealing:
  """The state of a search: where it is, and the best it has seen."""

  def __init__(self, problem, starts, rng):
    self._problem, self._rng = problem, rng
    self._moves = moves_lib.Moves(problem)
    self.evaluations = 0
    self.best, self._best_key = starts[0], None
    priced = self._price(starts)
    finite = priced.seconds[np.isfinite(priced.seconds)]
    self._unit_s = float(finite.min()) if finite.size else 1.
    self._penalty = _FIRST_PENALTY
    self._current = self._home = priced[self._costs(priced).argmin()]
    self._last_gain = 0.
    self._unions = []
    self._tried = np.zeros(len(self._moves.kinds))
    self._gained = np.zeros(len(self._moves.kinds))

  @property
  def fits(self) -> bool:
    """Whether the best placement so far runs."""
    return not self._best_key[0]

  @property
  def can_move(self) -> bool:
    """Whether any group has a choice."""
    return bool(self._moves.movable.size)

  def step(self, progress, count):
    """Prices `count` steps at some progress from 0 to 1, and takes one."""
    temperature_s = self._unit_s * _between(_FIRST_TEMPERATURE,
                                            _LAST_TEMPERATURE, progress)
    self._penalty = _between(_FIRST_PENALTY, _LAST_PENALTY, progress)
    unions = self._unions[:count]
    kinds = self._rng.choice(len(self._tried), count - len(unions),
                             p=self._shares())
    proposals = self._price(
        np.stack(unions + [self._draw(kind) for kind in kinds]))
    gains = self._gains(proposals)
    self._learn(kinds, gains[len(unions):] / temperature_s)
    self._take(proposals, gains, temperature_s)
    self._return_home(progress)

  def _draw(self, kind) -> np.ndarray:
    result = self._moves.draw(self._moves.kinds[kind], self._current.devices,
                              self._rng)
    while self._rng.random() < _COMPOUND:
      kind = self._rng.choice(len(self._tried), p=self._moves.shares)
      result = self._moves.draw(self._moves.kinds[kind], result, self._rng)
    return result

  def _costs(self, priced) -> np.ndarray:
    """float64 [K], seconds and what overflows cost at present."""
    return priced.seconds + self._unit_s * self._penalty * priced.overflow

  def _gains(self, priced) -> np.ndarray:
    """float64 [K], seconds by which placements are better than the current."""
    if not np.isfinite(self._current.seconds):
      return np.where(np.isfinite(priced.seconds), np.inf, 0.)
    return self._costs(self._current) - self._costs(priced)

  def _shares(self) -> np.ndarray:
    """float64 [kinds], how often each kind is drawn."""
    success = self._moves.shares * (self._gained + .05) / (self._tried + 1)
    return (_SHARE_OF_HABIT * self._moves.shares +
            (1 - _SHARE_OF_HABIT) * success / success.sum())

  def _learn(self, kinds, gains):
    """Takes down gains [K], in units of the temperature."""
    self._tried *= _MEMORY_OF_KINDS
    self._gained *= _MEMORY_OF_KINDS
    np.add.at(self._tried, kinds, 1)
    np.add.at(self._gained, kinds, np.clip(gains, 0, 1))

  def _take(self, priced, gains, temperature_s):
    """Moves on by Metropolis' rule and notes what to try together."""
    least = temperature_s * np.log(1 - self._rng.random(len(gains)))
    ranked = np.argsort(-gains, kind='stable')
    gaining = [
        priced.devices[k] for k in ranked if gains[k] > _GAIN * self._unit_s
    ]
    self._unions = _together(self._current.devices, gaining[:_UNIONS + 1])
    taken = next((k for k in ranked if gains[k] >= least[k]), None)
    if taken is not None:
      self._current = priced[taken]

  def _return_home(self, progress):
    """Goes on from the best where the search has strayed for too long."""
    cost, home = self._costs(self._current), self._costs(self._home)
    if cost < home - _GAIN * self._unit_s:
      self._home, self._last_gain = self._current, progress
    elif progress - self._last_gain > _PATIENCE and cost > home:
      self._current = self._home
      self._last_gain, self._unions = progress, []

  def _price(self, devices: np.ndarray) -> _Priced:
    """Prices int [K, G], and keeps the best ever."""
    room = self._problem.cluster.pool_bytes
    prices = self._problem.evaluator.price_groups(self._problem.graph, devices)
    self.evaluations += len(devices)
    for row, key in zip(devices, prices.keys()):
      if self._best_key is None or key < self._best_key:
        self.best, self._best_key = row, key
    excess = np.maximum(prices.peak_bytes - room, 0) / np.maximum(room, 1)
    return _Priced(devices, prices.seconds, excess.sum(axis=1))


def evaluations_for(problem: placer_lib.Problem) -> int:
  """How many placements a search prices by default."""
  if not problem.evaluator.simulated:
    return _MEASURED
  affordable = _PRICED_OPS // max(problem.graph.num_ops, 1)
  return min(max(affordable, _FEWEST), _MOST)


def starting_points(problem: placer_lib.Problem, names: Sequence[str],
                    rng: np.random.Generator) -> np.ndarray:
  """int [S, G], where a search may begin.

  Args:
    problem: G groups.
    names: Placers to ask.
    rng: Of the blocks.

  Raises:
    InfeasiblePlacementError: the graph cannot be placed on the cluster.
  """
  first = np.unique(problem.graph.groups, return_index=True)[1]
  placements, _ = best_of.place_each(problem, names)
  return np.concatenate([
      _singles(problem),
      _blocks(problem, rng),
      *(p.devices[first][None] for p in placements.values())
  ]).astype(np.int32)


def _singles(problem) -> np.ndarray:
  """int [D, G], everything on one device."""
  devices = np.arange(problem.cluster.num_devices)[:, None]
  return _legal(problem, np.repeat(devices, problem.graph.num_groups, axis=1))


def _blocks(problem, rng) -> np.ndarray:
  """int [B, G], one stretch of the topological order on each accelerator.

  The stretches of the first are of equal work, the others end anywhere.
  """
  graph, cluster = problem.graph, problem.cluster
  devices = np.array(cluster.accelerators)
  first = np.unique(graph.groups[graph.topological_order], return_index=True)[1]
  order = np.argsort(first, kind='stable')
  work = np.cumsum(
      np.bincount(graph.groups, problem.op_seconds[:, devices].min(axis=1),
                  graph.num_groups)[order])
  rows = []
  for index in range(_BLOCK_STARTS if len(devices) > 1 else 0):
    ends = (np.sort(rng.random(len(devices)
                               - 1)) if index else np.arange(1, len(devices))
            / len(devices))
    row = np.empty(graph.num_groups, int)
    row[order] = devices[np.searchsorted(ends * work[-1], work)]
    rows.append(row)
  return _legal(problem, np.array(rows, int).reshape(-1, graph.num_groups))


def _legal(problem, devices) -> np.ndarray:
  """int [K, G], on the host or the first allowed device where one is not."""
  allowed = problem.allowed
  fallback = constraints.fallback_devices(allowed, problem.cluster.host)
  ok = allowed[np.arange(allowed.shape[0]), devices]
  return np.where(ok, devices, fallback)


def _between(first, last, progress):
  """From the first to the last, every factor alike."""
  return first * (last / first)**progress


def _together(current, gaining) -> list[np.ndarray]:
  """The best two changes of `current` in one, the best three, ..."""
  result, union = [], current
  for index, row in enumerate(gaining):
    # Of two that move one group, the better has its way.
    union = np.where(union == current, row, union)
    if index:
      result.append(union)
  return result
