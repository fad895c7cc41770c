"""Features and scores of moves."""

from __future__ import annotations

import numpy as np
import pytest

from gdp_grappler.features.moves import schema
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.search.moves import move_network
from gdp_grappler.placers.search.moves import move_scoring
from helpers import clusters
from helpers import graphs
from helpers import problems

_NAMES = schema.names(move_scoring.KINDS)


def _network(feature: str, weight: float,
             names: tuple[str, ...] = _NAMES) -> move_network.MoveNetwork:
  """A network whose logit is a multiple of one feature, if positive."""
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


def test_kinds_are_features_and_new_ones_have_none():
  incumbent, rows = _moved(2)
  describer = move_scoring.MoveDescriber(_problem())
  found = describer.describe(incumbent, rows, ['swap', 'of tomorrow'])
  column = _NAMES.index('kind:swap')
  assert found[:, column].tolist() == [1, 0]
  assert found[:, len(schema.NATIVE):].sum() == 1


def test_a_new_incumbent_is_looked_at():
  incumbent, rows = _moved(2)
  describer = move_scoring.MoveDescriber(_problem())
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
  describer = move_scoring.MoveDescriber(problem)
  fifo = describer.describe(incumbent, rows, ['group'] * 8)
  describer.set_priorities(-np.arange(problem.graph.num_ops, dtype=float))
  ordered = describer.describe(incumbent, rows, ['group'] * 8)
  assert (fifo != ordered).any()
  describer.set_priorities(None)
  assert (describer.describe(incumbent, rows, ['group'] * 8) == fifo).all()


def test_the_network_has_to_know_the_features():
  with pytest.raises(ValueError, match='other features'):
    move_scoring.MoveScorer(move_scoring.MoveDescriber(_problem()),
                            _network('groups', 1., schema.names(['group'])))


def test_the_network_ranks_moves():
  problem = problems.make(graphs.chain(6))
  here = np.ones(6, np.int32)
  rows = np.array([[2, 1, 1, 1, 1, 1], [2, 2, 2, 2, 1, 1], [2, 2, 1, 1, 1, 1]],
                  np.int32)
  scorer = move_scoring.MoveScorer(move_scoring.MoveDescriber(problem),
                                   _network('groups', 1.), .5)
  scores = scorer.scores(here, rows, ['group', 'unit', 'unit'])
  assert np.argsort(-scores).tolist() == [1, 2, 0]


def _by_chance(describer):
  return move_scoring.RandomScorer(describer, _network('groups', 1.),
                                   np.random.default_rng(0))


def _singles():
  """A describer of a chain, a placement, and four moves of one group each."""
  here = np.ones(6, np.int32)
  rows = np.repeat(here[None], 4, axis=0)
  rows[np.arange(4), np.arange(4)] = 2
  return move_scoring.MoveDescriber(problems.make(graphs.chain(6))), here, rows


def test_chance_prefers_no_move():
  describer, here, rows = _singles()
  scorer = _by_chance(describer)
  first = [
      int(np.argmax(scorer.scores(here, rows, ['unit'] * 4)))
      for _ in range(400)
  ]
  assert np.bincount(first, minlength=4).min() > 60


@pytest.mark.parametrize('make', [
    _by_chance, lambda describer: move_scoring.MoveScorer(
        describer, _network('groups', 1.), .5)
], ids=['chance', 'network'])
def test_all_prefer_what_gained_in_this_search(make):
  describer, here, rows = _singles()
  scorer = make(describer)
  kinds = ['unit', 'group', 'unit', 'group']
  for _ in range(30):
    scorer.scores(here, rows, kinds)
    scorer.learn(np.array([0, 1]), np.array([False, True]))
  scores = scorer.scores(here, rows, kinds)
  assert scores[[1, 3]].min() > scores[[0, 2]].max()


def test_moves_have_to_be_scored_before_they_gain():
  with pytest.raises(ValueError, match='Score moves'):
    _by_chance(_singles()[0]).learn(np.array([0]), np.array([True]))


def test_estimates_rise_with_the_steps_of_independent_ops():
  problem = problems.make(graphs.make_graph(num_ops=4), seconds=1.)
  rows = np.array([[1, 1, 1, 1], [1, 1, 1, 2], [1, 1, 2, 2]], np.int32)
  describer = move_scoring.MoveDescriber(problem)
  together, one_away, apart = describer.estimates(rows[0], rows)
  assert together == 0  # Nothing moves.
  assert together > one_away > apart
