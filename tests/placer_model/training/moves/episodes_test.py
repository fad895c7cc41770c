import numpy as np
import pytest

from gdp_grappler.evaluation import evaluator
from gdp_grappler.placers.search.moves import move_scoring
from gdp_grappler.placers.search.moves import moves as moves_lib
from gdp_grappler.placers.search.moves import shipped_moves
from helpers import graphs
from helpers import problems
from placer_model.training.moves import episodes
from placer_model.training.moves import move_config


def _prices(seconds, overflow):
  overflow = np.array(overflow)
  return evaluator.Prices(np.array(seconds, float),
                          np.zeros((len(seconds), 1), int), overflow,
                          np.isfinite(seconds) & (overflow == 0))


def test_reward_is_the_gain_in_the_logarithm_of_the_price():
  rewards = episodes.rewards(_prices([2.], [0]),
                             _prices([1., 4., 1., np.inf], [0, 0, 5, 0]))
  np.testing.assert_allclose(rewards, [np.log(2), 0, 0, 0])


def test_what_makes_it_fit_has_the_highest_reward():
  rewards = episodes.rewards(_prices([2.], [100]),
                             _prices([9., 1., 1., np.inf], [0, 50, 200, 9]))
  np.testing.assert_allclose(rewards, [1, np.log(2), 0, 0])


@pytest.fixture(name='played', scope='module')
def _played():
  problem = problems.make(graphs.random_graph(1, 300))
  config = move_config.MoveConfig(episode_prices=20, draws=24, at_once=3)
  start = np.ones(problem.graph.num_groups, np.int32)

  def play(seed):
    return episodes.play(problem, start, shipped_moves.network(), config,
                         np.random.default_rng(seed),
                         move_scoring.MoveDescriber(problem),
                         moves_lib.Moves(problem))

  return play, start, config


def test_looks_tell_what_was_chosen_and_what_it_brought(played):
  play, start, config = played
  looks, found = play(0)
  assert len(found.prices) == config.episode_prices
  assert (found.devices[0] == start).all()
  for look in looks:
    assert len(look.features) <= config.draws
    assert 1 <= len(look.chosen) == len(look.rewards) <= config.at_once
    assert len({*look.chosen}) == len(look.chosen)
    assert look.expected >= 0 and (look.rewards >= 0).all()
  best = max(look.rewards.max() for look in looks)
  total = np.log(found.prices.seconds[0] / found.prices.seconds.min())
  assert 0 < best <= total + 1e-9


def test_equal_seeds_equal_episodes(played):
  play, *_ = played
  once, again, other = (np.concatenate([look.chosen for look in play(seed)[0]])
                        for seed in (0, 0, 1))
  assert once.tolist() == again.tolist() != other.tolist()
