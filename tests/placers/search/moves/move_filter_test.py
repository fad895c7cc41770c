"""Which moves are priced, and what a search makes of a model."""

from __future__ import annotations

from typing import Sequence

import numpy as np
import pytest

from gdp_grappler.features.moves import schema
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.search import annealing
from gdp_grappler.placers.search import search_config
from gdp_grappler.placers.search.moves import move_filter
from gdp_grappler.placers.search.moves import move_model
from gdp_grappler.placers.search.moves import move_network
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


def test_estimates_rise_with_the_steps_of_independent_ops():
  problem = problems.make(graphs.make_graph(num_ops=4), seconds=1.)
  rows = np.array([[1, 1, 1, 1], [1, 1, 1, 2], [1, 1, 2, 2]], np.int32)
  describer = move_filter.MoveDescriber(problem)
  together, one_away, apart = describer.estimates(rows[0], rows)
  assert together == 0  # Nothing moves.
  assert together > one_away > apart
