import numpy as np

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
  chooser = choosers.ByNetwork(move_filter.MoveDescriber(problem), _counting(),
                               .5)
  scores = chooser.scores(here, rows, ['group', 'unit', 'unit'])
  assert np.argsort(-scores).tolist() == [1, 2, 0]


def test_chance_prefers_no_move():
  chooser = choosers.ByChance(np.random.default_rng(0))
  rows = np.zeros((4, 3), np.int32)
  first = [
      int(np.argmax(chooser.scores(rows[0], rows, ['unit'] * 4)))
      for _ in range(400)
  ]
  assert np.bincount(first, minlength=4).min() > 60


def test_untrained_is_of_the_same_shape_and_knows_nothing_of_the_other():
  trained = shipped_moves.network()
  other = choosers.untrained(trained, np.random.default_rng(0))
  assert other.features == trained.features
  assert (other.mean == trained.mean).all()
  assert other.hidden_weights.shape == trained.hidden_weights.shape
  likeness = np.corrcoef(other.hidden_weights.ravel(),
                         trained.hidden_weights.ravel())[0, 1]
  assert abs(likeness) < .1
