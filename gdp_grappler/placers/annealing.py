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

A `MoveModel` may look at more steps than are priced, and choose among them.
"""

from __future__ import annotations

import dataclasses
import math
import sys

import numpy as np

from gdp_grappler import deadlines
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.placers import move_model as move_model_lib
from gdp_grappler.placers import moves as moves_lib
from gdp_grappler.placers import neighbourhood
from gdp_grappler.placers import packing
from gdp_grappler.placers import placer as placer_lib

# Steps priced at a time. Divisible by the usual numbers of cores; one number on
# all machines, so that the result does not depend on them.
BATCH = 16
_UNIONS = 4
# Placements that a search prices which only has to fit: so many ops in all.
_RELIEF_OPS, _RELIEF_MOST = 20_000_000, 4_000
# Packed memories from which it begins anew if it found none.
_RELIEF_STARTS = 4
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
# From here on what is about to be the best is priced closely, if thousands have
# been compared: in the end the gains of steps are as small as what prices are
# off by, and the best of many is the one whose price is off by most.
_CLOSELY = .5
_MANY = 1000
# A temperature is a share of a step; of a shorter one it would be 0.
_LEAST_S = 1e-290


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

  def __getitem__(self, k: int) -> _Priced:
    return _Priced(self.devices[k], self.seconds[k], self.overflow[k])


class Annealing:
  """A search: where it is, and the best it has seen.

  Attributes:
    best: int [G], the best placement priced since the search was started.
    best_key: What it ranks by (`Prices.keys`).
    ranking: int [S], the starts, the best first.
    evaluations: Placements priced so far.
  """

  def __init__(self, problem: placer_lib.Problem, starts: np.ndarray,
               rng: np.random.Generator,
               model: move_model_lib.MoveModel | None = None,
               moves: moves_lib.Moves | None = None) -> None:
    """Prices where the search may begin.

    Args:
      problem: G groups.
      starts: int [S, G], legal; at least one.
      rng: Of the steps.
      model: Chooses the steps to price; None prices all that are drawn.
      moves: Of the problem, which searches in one thread may share; by default
        of all kinds.
    """
    self._problem, self._rng, self._model = problem, rng, model
    self._moves = moves_lib.Moves(problem) if moves is None else moves
    self.evaluations = 0
    self._penalty = _FIRST_PENALTY
    self._looks_closely = False
    self._tried = np.zeros(len(self._moves.kinds))
    self._gained = np.zeros(len(self._moves.kinds))
    self.restart(starts)

  def restart(self, starts: np.ndarray, progress: float = 0.) -> None:
    """Goes on from other placements, and forgets what was the best before.

    Args:
      starts: int [S, G], legal; at least one.
      progress: How far the search has come.
    """
    self.best: np.ndarray = starts[0]
    self.best_key: evaluator_lib.Key = (True, True, sys.maxsize, math.inf)
    priced = self._price(starts)
    some = priced.seconds[np.isfinite(priced.seconds)
                          & (priced.seconds > _LEAST_S)]
    # A step may take no time at all; what overflows still has to cost.
    self._unit_s = float(some.min()) if some.size else 1.
    self.ranking = np.argsort(self._costs(priced), kind='stable')
    self._current = self._home = priced[int(self.ranking[0])]
    self._last_gain = progress
    self._unions: list[np.ndarray] = []

  @property
  def fits(self) -> bool:
    """Whether the best placement so far runs."""
    return not self.best_key[0]

  @property
  def can_move(self) -> bool:
    """Whether any group has a choice."""
    return bool(self._moves.movable.size)

  def step(self, progress: float, count: int) -> None:
    """Prices `count` steps at some progress from 0 to 1, and takes one."""
    if (progress >= _CLOSELY and not self._looks_closely and
        self.evaluations >= _MANY and self._problem.evaluator.simulated):
      self._looks_closely = True
      self.best_key = self._closely(self.best)
    temperature_s = self._unit_s * _between(_FIRST_TEMPERATURE,
                                            _LAST_TEMPERATURE, progress)
    self._penalty = _between(_FIRST_PENALTY, _LAST_PENALTY, progress)
    unions = self._unions[:count]
    kinds, rows = self._draw(count - len(unions))
    drawn = np.concatenate([unions, rows]) if unions else rows
    least = temperature_s * np.log(1 - self._rng.random(count))
    proposals = self._price(drawn, self._ceilings_s(least))
    gains = self._gains(proposals)
    self._learn(kinds, gains[len(unions):] / temperature_s)
    if self._model is not None and len(kinds):
      self._model.told(gains[len(unions):] / self._unit_s)
    self._take(proposals, gains, least)
    self._return_home(progress)

  def _draw(self, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Kinds, int [count], and steps, int32 [count, G]."""
    draws = count if self._model is None else count * self._model.draws
    kinds = self._rng.choice(len(self._tried), draws, p=self._shares())
    here = self._current.devices
    rows = self._moves.draw_each(kinds, here, self._rng, _COMPOUND,
                                 self._moves.shares)
    if self._model is None or not count:
      return kinds, rows
    names = self._model.amended(here, rows,
                                [self._moves.kinds[kind] for kind in kinds],
                                self._rng)
    chosen = self._model.choose(here, rows, names, count)
    return kinds[chosen], rows[chosen]

  def _costs(self, priced: _Priced) -> np.ndarray:
    """float64 [K], seconds and what overflows cost at present."""
    return priced.seconds + self._unit_s * self._penalty * priced.overflow

  def _gains(self, priced: _Priced) -> np.ndarray:
    """float64 [K], seconds by which placements are better than the current."""
    if not np.isfinite(self._current.seconds):
      return np.where(np.isfinite(priced.seconds), np.inf, 0.)
    return self._costs(self._current) - self._costs(priced)

  def _shares(self) -> np.ndarray:
    """float64 [kinds], how often each kind is drawn."""
    usual = self._moves.shares
    success = usual * (self._gained + .05) / (self._tried + 1)
    return (_SHARE_OF_HABIT * usual +
            (1 - _SHARE_OF_HABIT) * success / success.sum())

  def _learn(self, kinds: np.ndarray, gains: np.ndarray) -> None:
    """Takes down gains [K], in units of the temperature."""
    self._tried *= _MEMORY_OF_KINDS
    self._gained *= _MEMORY_OF_KINDS
    np.add.at(self._tried, kinds, 1)
    np.add.at(self._gained, kinds, np.clip(gains, 0, 1))

  def _ceilings_s(self, least: np.ndarray) -> evaluator_lib.Ceiling:
    """What takes longer is neither taken, with such gains [K], nor the best."""
    if not self.fits:
      return math.inf
    return np.maximum(self._costs(self._current) - least, self.best_key[-1])

  def _take(self, priced: _Priced, gains: np.ndarray,
            least: np.ndarray) -> None:
    """Moves on by Metropolis' rule and notes what to try together.

    Args:
      priced: K proposals.
      gains: float64 [K].
      least: float64 [K], the gain with which each is taken.
    """
    ranked = np.argsort(-gains, kind='stable')
    gaining = [
        priced.devices[k] for k in ranked if gains[k] > _GAIN * self._unit_s
    ]
    self._unions = neighbourhood.unions(self._current.devices,
                                        gaining[:_UNIONS + 1])
    taken = next((k for k in ranked if gains[k] >= least[k]), None)
    if taken is not None:
      self._current = priced[taken]

  def _return_home(self, progress: float) -> None:
    """Goes on from the best where the search has strayed for too long."""
    cost, home = self._costs(self._current), self._costs(self._home)
    if cost < home - _GAIN * self._unit_s:
      self._home, self._last_gain = self._current, progress
    elif progress - self._last_gain > _PATIENCE and cost > home:
      self._current = self._home
      self._last_gain, self._unions = progress, []

  def _price(self, devices: np.ndarray,
             ceiling_s: evaluator_lib.Ceiling = math.inf) -> _Priced:
    """Prices int [K, G], up to ceilings, and keeps the best ever."""
    room = self._problem.cluster.pool_bytes
    prices = self._problem.evaluator.price_groups(self._problem.graph, devices,
                                                  ceiling_s)
    self.evaluations += len(devices)
    seconds = prices.seconds.copy()
    for k, key in enumerate(prices.keys()):
      if key < self.best_key and self._looks_closely:
        key = self._closely(devices[k])
        seconds[k] = key[-1]
      if key < self.best_key:
        self.best, self.best_key = devices[k], key
    excess = np.maximum(prices.peak_bytes - room, 0) / np.maximum(room, 1)
    return _Priced(devices, seconds, excess.sum(axis=1))

  def _closely(self, row: np.ndarray) -> evaluator_lib.Key:
    """What a placement int [G] ranks by if more care is taken."""
    problem = self._problem
    prices = problem.evaluator.price_closely(problem.graph,
                                             row[problem.graph.groups][None])
    return prices.keys()[0]


def relieved(problem: placer_lib.Problem, devices: np.ndarray,
             refined: bool = False,
             deadline: deadlines.Deadline = deadlines.NEVER) -> np.ndarray:
  """int [G], the first placement found that fits, or what overflows least.

  For placers whose proposals exceed a memory although others may not. Where a
  search finds none, others begin where memories were packed.

  Args:
    problem: G groups.
    devices: int [G], where to begin.
    refined: Whether to look for faster ones, too, for a while.
    deadline: Until when.
  """
  start = np.asarray(devices, np.int32)
  most = min(_RELIEF_OPS // max(problem.graph.num_ops, 1), _RELIEF_MOST)
  rng, moves = np.random.default_rng(problem.seed), moves_lib.Moves(problem)
  search = _relieving(problem, start, rng, moves, most, refined, deadline)
  if search.fits or not search.can_move:
    return search.best
  found = [search]
  for other in (*packing.packed(problem)[:_RELIEF_STARTS], start):
    found.append(_relieving(problem, other, rng, moves, most, refined,
                            deadline))
    if found[-1].fits:
      break
  return min(found, key=lambda search: search.best_key).best


def _relieving(problem: placer_lib.Problem, start: np.ndarray,
               rng: np.random.Generator, moves: moves_lib.Moves, most: int,
               refined: bool, deadline: deadlines.Deadline) -> Annealing:
  """A search that has priced so many placements, or found one that fits."""
  search = Annealing(problem, start[None], rng, moves=moves)
  while search.can_move and search.evaluations < most:
    if search.fits and (not refined or deadline.passed):
      break
    search.step(search.evaluations / most, BATCH)
  return search


def with_packed(problem: placer_lib.Problem, starts: np.ndarray,
                search: Annealing) -> Annealing:
  """A search, from packed memories as well if nothing that it knows fits.

  Args:
    problem: G groups.
    starts: int [S, G], where it began.
    search: Of that problem.
  """
  if not search.fits and search.can_move:
    ranking = search.ranking
    search.restart(np.concatenate([starts, packing.packed(problem)]))
    search.ranking = ranking
  return search


def _between(first: float, last: float, progress: float) -> float:
  """From the first to the last, every factor alike."""
  return first * (last / first)**progress
