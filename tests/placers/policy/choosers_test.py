import numpy as np
import pytest

from gdp_grappler.features.moves import schema
from gdp_grappler.placers.policy import choosers
from gdp_grappler.placers.search.moves import move_filter
from gdp_grappler.placers.search.moves import move_network
from gdp_grappler.placers.search.moves import shipped_moves
from helpers import graphs
from helpers import problems

_NAMES = schema.names(move_filter.KINDS)


def _counting():
  """Its logit is the number of groups that move, on its own scale."""
  hidden = np.zeros((len(_NAMES), 1))
  hidden[_NAMES.index('groups')] = 1
  return move_network.MoveNetwork(_NAMES, np.zeros(len(_NAMES)),
                                  np.ones(len(_NAMES)), hidden, [0.],
                                  [[1., 0.]], [0., 0.])


def test_the_network_ranks_moves():
  problem = problems.make(graphs.chain(6))
  here = np.ones(6, np.int32)
  rows = np.array([[2, 1, 1, 1, 1, 1], [2, 2, 2, 2, 1, 1], [2, 2, 1, 1, 1, 1]],
                  np.int32)
  chooser = choosers.NetworkChooser(move_filter.MoveDescriber(problem),
                                    _counting(), .5)
  scores = chooser.scores(here, rows, ['group', 'unit', 'unit'])
  assert np.argsort(-scores).tolist() == [1, 2, 0]


def _by_chance(describer):
  return choosers.RandomChooser(describer, _counting(),
                                np.random.default_rng(0))


def _singles():
  """A chain's describer, a placement, and four moves of a group each."""
  here = np.ones(6, np.int32)
  rows = np.repeat(here[None], 4, axis=0)
  rows[np.arange(4), np.arange(4)] = 2
  return move_filter.MoveDescriber(problems.make(graphs.chain(6))), here, rows


def test_chance_prefers_no_move():
  describer, here, rows = _singles()
  chooser = _by_chance(describer)
  first = [
      int(np.argmax(chooser.scores(here, rows, ['unit'] * 4)))
      for _ in range(400)
  ]
  assert np.bincount(first, minlength=4).min() > 60


@pytest.mark.parametrize('make', [
    _by_chance,
    lambda describer: choosers.NetworkChooser(describer, _counting(), .5)
], ids=['chance', 'network'])
def test_all_prefer_what_gained_in_this_search(make):
  describer, here, rows = _singles()
  chooser = make(describer)
  kinds = ['unit', 'group', 'unit', 'group']
  for _ in range(30):
    chooser.scores(here, rows, kinds)
    chooser.learn(np.array([0, 1]), np.array([False, True]))
  scores = chooser.scores(here, rows, kinds)
  assert scores[[1, 3]].min() > scores[[0, 2]].max()


def test_moves_have_to_be_scored_before_they_gain():
  with pytest.raises(ValueError, match='Score moves'):
    _by_chance(_singles()[0]).learn(np.array([0]), np.array([True]))


def test_untrained_is_of_the_same_shape_and_knows_nothing_of_the_other():
  trained = shipped_moves.network()
  other = choosers.untrained(trained, np.random.default_rng(0))
  assert other.features == trained.features
  assert (other.mean == trained.mean).all()
  assert other.hidden_weights.shape == trained.hidden_weights.shape
  likeness = np.corrcoef(other.hidden_weights.ravel(),
                         trained.hidden_weights.ravel())[0, 1]
  assert abs(likeness) < .1
