"""Simulated annealing of the groups' devices.

S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi, "Optimization by Simulated
Annealing", Science 220, 1983: the search accepts a move that makes the step d
seconds longer with probability exp(-d / T), and the temperature T falls. The
rule is that of Metropolis et al. 1953. Two things are not in the paper:

* The search draws a batch of moves from the current placement and prices all of
  them together. Of the moves that the rule accepts, the search makes the one
  with the lowest cost: the step, plus a penalty for memory that is exceeded.
* The search draws those kinds of moves more often that have gained recently.

A model (`MoveScorer`) may score more moves than the search prices. The search
then prices the moves with the highest scores, and a few others.
"""

from __future__ import annotations

import dataclasses
import math
import sys

import numpy as np

from gdp_grappler import deadlines
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.search import search_config
from gdp_grappler.placers.search.memory import memory_packing
from gdp_grappler.placers.search.moves import move_scoring
from gdp_grappler.placers.search.moves import moves as moves_lib

# Shortest step, in seconds, that may be the unit of temperatures. With a
# shorter step, a temperature would be 0 in floating point.
_LEAST_S = 1e-290


@dataclasses.dataclass(frozen=True, eq=False)
class _Priced:
  """K placements of the groups, or one.

  Attributes:
    devices: int32 [K, G].
    seconds: float64 [K], step times.
    overflow: float64 [K], bytes that exceed each memory, as a share of that
      memory, summed over the memories.
  """

  devices: np.ndarray
  seconds: np.ndarray
  overflow: np.ndarray

  def __getitem__(self, k: int) -> _Priced:
    return _Priced(self.devices[k], self.seconds[k], self.overflow[k])


class Annealing:
  """A search: its current placement and the best placement so far.

  Attributes:
    best: int [G], the best placement priced since the last (re)start.
    best_key: Key of that placement (`Prices.keys`).
    priorities: float64 [N], the order of ops in prices; None means first in,
      first out.
    ranking: int [S], indices of the starts, the best first.
    evaluations: Placements priced so far.
    looks_closely: Whether new best placements get close prices
      (`Evaluator.price_closely`). `best_key` is then a close price.
  """

  def __init__(self, problem: placer_lib.Problem, starts: np.ndarray,
               rng: np.random.Generator,
               model: move_scoring.MoveScorer | None = None,
               moves: moves_lib.Moves | None = None,
               priorities: np.ndarray | None = None) -> None:
    """Prices the starts.

    Args:
      problem: G groups.
      starts: int [S, G], legal; at least one.
      rng: Random numbers of the search.
      model: Scores the moves; None prices all moves that are drawn.
      moves: Draws moves of the problem; by default of all kinds. Searches in
        one thread may share the object.
      priorities: float64 [N], the order of ops in prices; None means first in,
        first out.
    """
    self._config = config = search_config.DEFAULT.annealing
    self._problem, self._rng, self._model = problem, rng, model
    self._moves = moves_lib.Moves(problem) if moves is None else moves
    self.evaluations = 0
    self._penalty = config.first_penalty
    self.looks_closely = False
    self._tried = np.zeros(len(self._moves.kinds))
    self._gained = np.zeros(len(self._moves.kinds))
    self.restart(starts, priorities)

  def restart(self, starts: np.ndarray,
              priorities: np.ndarray | None = None) -> None:
    """Continues from other placements, and forgets the best one so far.

    Args:
      starts: int [S, G], legal; at least one.
      priorities: The order from now on, as in `__init__`.
    """
    self.priorities = priorities
    if self._model is not None:
      self._model.set_priorities(priorities)
    self.best: np.ndarray = starts[0]
    self.best_key: evaluator_lib.Key = (True, True, sys.maxsize, math.inf)
    priced = self._price(starts)
    some = priced.seconds[np.isfinite(priced.seconds)
                          & (priced.seconds > _LEAST_S)]
    # If no step takes time, the unit is 1, so that an overflow has a cost.
    self._unit_s = float(some.min()) if some.size else 1.
    self.ranking = np.argsort(self._costs(priced), kind='stable')
    self._current = priced[int(self.ranking[0])]

  def pack_if_none_fits(self, starts: np.ndarray) -> None:
    """If no start fits, restarts from the starts and from packed placements.

    Packed placements fit into the memories (`memory_packing`). The `ranking` is
    still that of the starts.

    Args:
      starts: int [S, G], the starts.
    """
    if not self.fits and self.can_move:
      ranking = self.ranking
      packed = memory_packing.packed(self._problem)
      self.restart(np.concatenate([starts, packed]), self.priorities)
      self.ranking = ranking

  @property
  def fits(self) -> bool:
    """Whether the best placement so far fits into the memories and runs."""
    return not self.best_key[0]

  @property
  def can_move(self) -> bool:
    """Whether any group has more than one device to choose from."""
    return bool(self._moves.movable.size)

  def close_key(self, row: np.ndarray,
                priorities: np.ndarray | None) -> evaluator_lib.Key:
    """Key of a placement by a closer price (`Evaluator.price_closely`).

    Args:
      row: int [G], the placement.
      priorities: float64 [N], the order of ops; None means first in, first out.
    """
    graph = self._problem.graph
    return self._problem.evaluator.price_closely(graph, row[graph.groups][None],
                                                 priorities).keys()[0]

  def price_batch(self, progress: float, count: int) -> None:
    """Prices moves and makes at most one of them.

    Args:
      progress: Progress of the annealing, from 0 to 1.
      count: Number of moves.
    """
    config = self._config
    if (progress >= config.closely_from and not self.looks_closely and
        self.evaluations >= config.closely_after and
        self._problem.evaluator.simulated):
      self.looks_closely = True
      self.best_key = self.close_key(self.best, self.priorities)
    temperature_s = self._unit_s * _between(config.first_temperature,
                                            config.last_temperature, progress)
    self._penalty = _between(config.first_penalty, config.last_penalty,
                             progress)
    kinds, rows = self._draw(count)
    least = temperature_s * np.log(1 - self._rng.random(count))
    proposals = self._price(rows, self._ceilings_s(least))
    gains = self._gains(proposals)
    self._learn(kinds, gains / temperature_s)
    self._take(proposals, gains, least)

  def _draw(self, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Kinds of moves, int [count], and placements, int32 [count, G]."""
    draws = count if self._model is None else count * self._config.draws
    kinds = self._rng.choice(len(self._tried), draws, p=self._shares())
    here = self._current.devices
    rows = self._moves.draw_each(kinds, here, self._rng, self._config.compound)
    if self._model is None or not count:
      return kinds, rows
    free = min(round(count * self._config.unfiltered), count)
    scores = self._model.scores(
        here, rows[free:], [self._moves.kinds[kind] for kind in kinds[free:]])
    # A move that changes no device would waste a price.
    scores[(rows[free:] == here).all(axis=1)] = -np.inf
    best = np.argsort(-scores, kind='stable')[:count - free]
    chosen = np.concatenate([np.arange(free), free + best])
    return kinds[chosen], rows[chosen]

  def _costs(self, priced: _Priced) -> np.ndarray:
    """float64 [K], seconds of the step plus the present cost of overflows."""
    return priced.seconds + self._unit_s * self._penalty * priced.overflow

  def _gains(self, priced: _Priced) -> np.ndarray:
    """float64 [K], cost of the current placement less costs of others."""
    if not np.isfinite(self._current.seconds):
      return np.where(np.isfinite(priced.seconds), np.inf, 0.)
    return self._costs(self._current) - self._costs(priced)

  def _shares(self) -> np.ndarray:
    """float64 [kinds], probability with which each kind is drawn."""
    usual = self._moves.shares
    success = (usual * (self._gained + self._config.prior_gain) /
               (self._tried + 1))
    return (self._config.usual_share * usual +
            (1 - self._config.usual_share) * success / success.sum())

  def _learn(self, kinds: np.ndarray, gains: np.ndarray) -> None:
    """Counts tries and gains [K] per kind; gains in units of temperature."""
    self._tried *= self._config.success_decay
    self._gained *= self._config.success_decay
    np.add.at(self._tried, kinds, 1)
    np.add.at(self._gained, kinds, np.clip(gains, 0, 1))

  def _ceilings_s(self, least: np.ndarray) -> evaluator_lib.Ceiling:
    """Step times above which the price of a move does not matter.

    A slower move is neither accepted nor the best placement so far.

    Args:
      least: float64 [K], smallest gain with which each move is accepted.
    """
    if not self.fits:
      return math.inf
    return np.maximum(self._costs(self._current) - least, self.best_key[-1])

  def _take(self, priced: _Priced, gains: np.ndarray,
            least: np.ndarray) -> None:
    """Makes a move by Metropolis' rule.

    Args:
      priced: K proposals.
      gains: float64 [K], gain of each proposal.
      least: float64 [K], smallest gain with which each proposal is accepted.
    """
    ranked = np.argsort(-gains, kind='stable')
    taken = next((k for k in ranked if gains[k] >= least[k]), None)
    if taken is not None:
      self._current = priced[taken]

  def _price(self, devices: np.ndarray,
             ceiling_s: evaluator_lib.Ceiling = math.inf) -> _Priced:
    """Prices int [K, G] up to ceilings, and keeps the best placement."""
    room = self._problem.cluster.pool_bytes
    graph, evaluator = self._problem.graph, self._problem.evaluator
    if self.priorities is None:
      prices = evaluator.price_groups(graph, devices, ceiling_s)
    else:
      prices = evaluator.price_in_order(graph, devices[:, graph.groups],
                                        self.priorities, ceiling_s)
    self.evaluations += len(devices)
    seconds = prices.seconds.copy()
    for k, key in enumerate(prices.keys()):
      if key < self.best_key and self.looks_closely:
        key = self.close_key(devices[k], self.priorities)
        seconds[k] = key[-1]
      if key < self.best_key:
        self.best, self.best_key = devices[k], key
    excess = np.maximum(prices.peak_bytes - room, 0) / np.maximum(room, 1)
    return _Priced(devices, seconds, excess.sum(axis=1))


def find_fitting(problem: placer_lib.Problem, devices: np.ndarray,
                 refined: bool = False,
                 deadline: deadlines.Deadline = deadlines.NEVER) -> np.ndarray:
  """int [G], a placement that fits; if none, that with least overflow.

  The function serves placers whose proposals overflow a memory although other
  placements may fit. The first annealing starts with `devices`. If it finds no
  placement that fits, further annealings start with packed placements
  (`memory_packing`).

  Args:
    problem: G groups.
    devices: int [G], the first start.
    refined: Whether an annealing goes on after the first placement that fits,
      to find a faster one.
    deadline: End of the searches.
  """
  start = np.asarray(devices, np.int32)
  config = search_config.DEFAULT.fit
  most = min(config.priced_ops // max(problem.graph.num_ops, 1), config.most)
  rng, moves = np.random.default_rng(problem.seed), moves_lib.Moves(problem)
  search = _search_fit(problem, start, rng, moves, most, refined, deadline)
  if search.fits or not search.can_move or deadline.passed:
    return search.best
  searches = [search]
  for other in (*memory_packing.packed(problem)[:config.starts], start):
    searches.append(
        _search_fit(problem, other, rng, moves, most, refined, deadline))
    if searches[-1].fits or deadline.passed:
      break
  return min(searches, key=lambda search: search.best_key).best


def _search_fit(problem: placer_lib.Problem, start: np.ndarray,
                rng: np.random.Generator, moves: moves_lib.Moves, most: int,
                refined: bool, deadline: deadlines.Deadline) -> Annealing:
  """An annealing until a placement fits, or until the limits if `refined`."""
  search = Annealing(problem, start[None], rng, moves=moves)
  batch, batch_s = search_config.DEFAULT.annealing.batch, 0.
  while search.can_move and search.evaluations < most:
    # Nothing stops a batch. If no placement fits yet, a batch begins even if it
    # will end after the deadline.
    if search.fits and (not refined or deadline.remaining_s < batch_s):
      break
    if deadline.passed:
      break
    begin_s = deadline.clock()
    search.price_batch(search.evaluations / most, batch)
    batch_s = deadline.clock() - begin_s
  return search


def _between(first: float, last: float, progress: float) -> float:
  """Falls or rises geometrically from `first` to `last` with the progress."""
  return first * (last / first)**progress
