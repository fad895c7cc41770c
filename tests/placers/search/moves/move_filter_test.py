"""Which moves are priced, and what a search makes of a model."""

from __future__ import annotations

import dataclasses
from typing import Sequence

import numpy as np
import pytest

from gdp_grappler.features.moves import featurizer
from gdp_grappler.features.moves import schema
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.search import annealing
from gdp_grappler.placers.search import search_config
from gdp_grappler.placers.search.moves import move_filter
from gdp_grappler.placers.search.moves import move_model
from gdp_grappler.placers.search.moves import move_network
from gdp_grappler.placers.search.moves import moves
from gdp_grappler.placers.search.moves import rescheduling
from helpers import clusters
from helpers import graphs
from helpers import problems

_NAMES = schema.names(move_filter.KINDS)


def _network(feature: str, weight: float,
             names: tuple[str, ...] = _NAMES) -> move_network.MoveNetwork:
  """Its logit is a multiple of one feature, if that is positive."""
  count = len(names)
  hidden = np.zeros((count, 1))
  hidden[names.index(feature)] = 1
  return move_network.MoveNetwork(names, np.zeros(count), np.ones(count),
                                  hidden, [0.], [[weight, 0.]], [0., 0.])


def _problem(num_ops: int = 40) -> placer_lib.Problem:
  return problems.make(graphs.random_graph(3, num_ops),
                       clusters.make_cluster(3), seconds=1.)


def _moved(count: int) -> tuple[np.ndarray, np.ndarray]:
  """An incumbent, and moves of 1, 2, ... groups."""
  groups = _problem().graph.num_groups
  incumbent = np.ones(groups, np.int32)
  rows = np.tile(incumbent, (count, 1))
  for k in range(count):
    rows[k, :k + 1] = 2
  return incumbent, rows


def test_the_best_are_chosen_and_some_that_nobody_asked_about():
  incumbent, rows = _moved(8)
  chooser = move_filter.MoveFilter(
      _problem(), _network('groups', 1.),
      move_filter.FilterConfig(draws=2, unfiltered=.5, gain_weight=0))
  chosen = chooser.choose(incumbent, rows, ['group'] * 8, 4)
  assert chosen.tolist() == [0, 1, 7, 6]
  smallest = move_filter.MoveFilter(_problem(), _network('groups', -1.),
                                    move_filter.FilterConfig(unfiltered=0))
  assert smallest.choose(incumbent, rows, ['group'] * 8,
                         3).tolist() == [0, 1, 2]


def test_what_leads_nowhere_comes_last():
  incumbent, rows = _moved(4)
  rows[1] = incumbent
  chooser = move_filter.MoveFilter(_problem(), _network('groups', -1.),
                                   move_filter.FilterConfig(unfiltered=0))
  assert chooser.choose(incumbent, rows, ['?'] * 4, 4).tolist() == [0, 2, 3, 1]


def test_kinds_are_features_and_new_ones_have_none():
  incumbent, rows = _moved(2)
  describer = move_filter.MoveDescriber(_problem())
  found = describer.describe(incumbent, rows, ['swap', 'of tomorrow'])
  column = _NAMES.index('kind:swap')
  assert found[:, column].tolist() == [1, 0]
  assert found[:, len(schema.NATIVE):].sum() == 1


def test_a_new_incumbent_is_looked_at():
  incumbent, rows = _moved(2)
  describer = move_filter.MoveDescriber(_problem())
  before = describer.describe(incumbent, rows, ['group'] * 2)
  again = describer.describe(incumbent, rows, ['group'] * 2)
  assert (before == again).all()
  after = describer.describe(rows[0], rows, ['group'] * 2)
  assert not after[0].any() or after[0, :len(schema.NATIVE)].sum() == 0
  assert (after[1] != before[1]).any()


def test_an_order_changes_what_moves_look_like():
  problem = _problem()
  groups = problem.graph.num_groups
  incumbent = np.arange(groups, dtype=np.int32) % 2 + 1
  rows = np.tile(incumbent, (8, 1))
  for k in range(8):
    rows[k, k * 4:k * 4 + 4] = 2
  describer = move_filter.MoveDescriber(problem)
  fifo = describer.describe(incumbent, rows, ['group'] * 8)
  describer.set_priorities(-np.arange(problem.graph.num_ops, dtype=float))
  ordered = describer.describe(incumbent, rows, ['group'] * 8)
  assert (fifo != ordered).any()
  describer.set_priorities(None)
  assert (describer.describe(incumbent, rows, ['group'] * 8) == fifo).all()


def test_the_network_has_to_know_the_features():
  with pytest.raises(ValueError, match='other features'):
    move_filter.MoveFilter(_problem(),
                           _network('groups', 1., schema.names(['group'])))


class _Watcher(move_model.MoveModel):
  """Prices the first moves, and remembers what it saw."""

  def __init__(self, draws: int) -> None:
    self.draws = draws
    self.asked: list[tuple[int, int]] = []

  def revise(self, incumbent: np.ndarray, candidates: np.ndarray,
             kinds: Sequence[str], rng: np.random.Generator) -> Sequence[str]:
    """As they were drawn."""
    return kinds

  def choose(self, incumbent: np.ndarray, candidates: np.ndarray,
             kinds: Sequence[str], count: int) -> np.ndarray:
    """The first ones."""
    assert candidates.shape == (count * self.draws, len(incumbent))
    assert len(kinds) == len(candidates)
    self.asked.append((len(candidates), count))
    return np.arange(count)

  def set_priorities(self, priorities: np.ndarray | None) -> None:
    """Of no interest."""


def _searched(model: move_model.MoveModel | None,
              steps: int = 30) -> annealing.Annealing:
  problem = _problem()
  starts = np.ones((1, problem.graph.num_groups), np.int32)
  search = annealing.Annealing(problem, starts, np.random.default_rng(0), model)
  for step in range(steps):
    search.price_batch(step / steps, search_config.DEFAULT.annealing.batch)
  return search


def test_a_model_that_takes_everything_changes_nothing():
  watcher = _Watcher(draws=1)
  with_it, without = _searched(watcher), _searched(None)
  assert with_it.best.tolist() == without.best.tolist()
  assert with_it.evaluations == without.evaluations
  assert sum(count for _, count in watcher.asked) + 1 == without.evaluations


def test_more_are_drawn_than_priced():
  watcher = _Watcher(draws=3)
  search = _searched(watcher)
  assert search.evaluations == 1 + 30 * search_config.DEFAULT.annealing.batch
  assert all(drawn == 3 * count for drawn, count in watcher.asked)


def test_a_search_with_a_filter_is_a_search():
  problem = _problem()
  chooser = move_filter.MoveFilter(problem, _network('hastened_s', 1.))
  assert _searched(chooser).best.tolist() == _searched(
      move_filter.MoveFilter(problem, _network('hastened_s',
                                               1.))).best.tolist()


_ALL = rescheduling.ReschedulingConfig(share=1.)


def _narrow() -> placer_lib.Problem:
  """Many groups may be on the CPU alone, or on GPUs alone."""
  graph = graphs.random_graph(3, 60)
  types = np.random.default_rng(1).random((graph.num_groups, 2)) < .6
  types[~types.any(axis=1)] = True
  return problems.make(
      dataclasses.replace(graph, allowed_types=types[graph.groups]),
      clusters.make_cluster(3), seconds=1.)


def _legal(problem: placer_lib.Problem, rows: np.ndarray) -> np.ndarray:
  """bool [K]."""
  groups = np.arange(problem.graph.num_groups)
  return np.stack([problem.allowed[groups, row].all() for row in rows])


class _Checking(move_filter.MoveFilter):
  """Looks at all that is drawn, and counts what was placed anew."""

  rescheduled = 0

  def choose(self, incumbent: np.ndarray, candidates: np.ndarray,
             kinds: Sequence[str], count: int) -> np.ndarray:
    """As usual."""
    assert _legal(self.problem, candidates).all()
    self.rescheduled += list(kinds).count('repaired')
    return super().choose(incumbent, candidates, kinds, count)


def _searched_narrow() -> tuple[annealing.Annealing, int]:
  problem = _narrow()
  model = _Checking(problem, _network('hastened_s', 1.),
                    move_filter.FilterConfig(draws=3, rescheduling=_ALL))
  model.problem = problem
  starts = problem.allowed.argmax(axis=1).astype(np.int32)[None]
  search = annealing.Annealing(problem, starts, np.random.default_rng(0), model)
  for step in range(20):
    search.price_batch(step / 20, search_config.DEFAULT.annealing.batch)
  return search, model.rescheduled


def test_a_search_that_places_sets_anew_is_legal_and_repeatable():
  (one, rescheduled), (other, _) = _searched_narrow(), _searched_narrow()
  assert rescheduled > 20 * search_config.DEFAULT.annealing.batch
  assert _legal(_narrow(), one.best[None]).all()
  assert one.best.tolist() == other.best.tolist()
  assert one.best_key == other.best_key


def test_what_is_placed_anew_has_a_kind_of_its_own():
  problem = _problem()
  incumbent, rows = _moved(4)
  model = move_filter.MoveFilter(problem, _network('groups', 1.),
                                 move_filter.FilterConfig(rescheduling=_ALL))
  kinds = model.revise(incumbent, rows, ['ball'] * 4, np.random.default_rng(0))
  assert kinds == ['ball', 'repaired', 'repaired', 'repaired']
  found = move_filter.MoveDescriber(problem).describe(incumbent, rows, kinds)
  column = _NAMES.index('kind:repaired')
  assert found[:, column].tolist() == [0, 1, 1, 1]
  assert found[:, _NAMES.index('kind:ball')].tolist() == [1, 0, 0, 0]


def test_sets_are_placed_by_the_schedule_in_use():
  problem = problems.make(
      graphs.random_graph(3, 90),
      clusters.make_cluster(3, latency_s=.1, bandwidth_bytes_per_s=1e8),
      seconds=1.)
  incumbent = np.arange(problem.graph.num_groups, dtype=np.int32) % 2 + 1
  drawn = moves.Moves(problem).draw_each(
      np.full(40, moves.Moves.kinds.index('ball')), incumbent,
      np.random.default_rng(0))

  def placed(describer: move_filter.MoveDescriber) -> list[list[int]]:
    rows = drawn.copy()
    describer.reschedule(incumbent, rows, ['ball'] * 40, _ALL,
                         np.random.default_rng(0))
    return rows.tolist()

  describer = move_filter.MoveDescriber(problem)
  fifo = placed(describer)
  describer.set_priorities(-np.arange(problem.graph.num_ops, dtype=float))
  assert placed(describer) != fifo
  describer.set_priorities(None)
  assert placed(describer) == fifo != drawn.tolist()


def test_where_none_are_placed_anew_nothing_is_looked_at(monkeypatch):
  monkeypatch.setattr(featurizer.MoveFeaturizer, 'observe', None)
  incumbent, rows = _moved(4)
  before, rng = rows.copy(), np.random.default_rng(0)
  kinds = move_filter.MoveDescriber(_problem()).reschedule(
      incumbent, rows, ['ball'] * 4, rescheduling.ReschedulingConfig(share=0.),
      rng)
  assert kinds == ['ball'] * 4 and (rows == before).all()
  assert rng.random() == np.random.default_rng(0).random()


def test_estimates_rise_with_the_steps_of_independent_ops():
  problem = problems.make(graphs.make_graph(num_ops=4), seconds=1.)
  rows = np.array([[1, 1, 1, 1], [1, 1, 1, 2], [1, 1, 2, 2]], np.int32)
  describer = move_filter.MoveDescriber(problem)
  together, one_away, apart = describer.estimates(rows[0], rows)
  assert together == 0  # Nothing moves.
  assert together > one_away > apart
