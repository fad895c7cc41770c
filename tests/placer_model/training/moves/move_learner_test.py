"""PPO on choices of moves, by hand where that can be done."""

import dataclasses

import numpy as np
import pytest

from gdp_grappler.placers.search.moves import move_network
from placer_model.training.moves import episodes
from placer_model.training.moves import move_config
from placer_model.training.moves import move_learner

# Two looks with one choice each, of two moves with one feature.
_CONFIG = move_config.MoveConfig(rollouts=2, at_once=1, draws=2,
                                 episode_prices=2, epochs=1, temperature=1.,
                                 gain_weight=0., entropy_bonus=0.,
                                 learning_rate=.05, critic_epochs=0)


def _network():
  """Its logit of a gain is the feature."""
  return move_network.MoveNetwork(('x',), [0], [1], [[1, -1]], [0, 0],
                                  [[1, 0], [-1, 0]], [0, 0])


def _look(chosen, rewards, expected, features=((.5,), (-1.,))):
  return episodes.Look(np.array(features, np.float32), np.array(chosen),
                       np.array(rewards), expected)


_LOOKS = [_look([0], [.3], 0.), _look([1], [0.], .1)]


def _odds(network):
  """[2], the policy by hand."""
  logits, _ = network.predict(np.array([[.5], [-1.]], np.float32))
  chance = 1 / (1 + np.exp(-logits))
  return chance / chance.sum()


def _learned(looks=_LOOKS, times=1, **changes):
  learner = move_learner.MoveLearner(_network(),
                                     dataclasses.replace(_CONFIG, **changes))
  for _ in range(times):
    figures = learner.learn(looks)
  return learner.network(), figures


def test_the_loss_is_ppos_by_hand():
  """Advantages are .3 and -.1, in units of their root mean square.

  The mean is over the choices and their twins, which have no weight
  (`agent.PlacementAgent`).
  """
  scaled = np.array([.3, -.1]) / np.sqrt((.3**2 + .1**2) / 2)
  once, figures = _learned()
  np.testing.assert_allclose(figures['loss'], -scaled.mean() / 2, rtol=1e-4)
  ratios = _odds(once) / _odds(_network())
  assert ratios[0] > 1.0001 and ratios[1] < .9999
  for clip in .2, 1e-3:
    low, high = np.clip(ratios, 1 - clip, 1 + clip), ratios
    terms = np.minimum(low * scaled, high * scaled)
    _, figures = _learned(epochs=2, clip_ratio=clip)
    np.testing.assert_allclose(figures['loss'], -terms.mean() / 2, rtol=1e-3)


def test_figures_of_the_policy():
  network, figures = _learned()
  before, after = _odds(_network()), _odds(network)
  np.testing.assert_allclose(figures['entropy'],
                             -(before * np.log(before)).sum(), rtol=1e-4)
  np.testing.assert_allclose(figures['kl'],
                             (before * np.log(before / after)).sum(), rtol=.02)


def test_what_was_chosen_before_is_not_open():
  """The second choice of a look had one move left: it teaches nothing."""
  look = _look([0, 1], [.2, .2], .1)
  learner = move_learner.MoveLearner(_network(), _CONFIG)
  learner.learn([look])
  probabilities = learner._agent.probabilities()
  np.testing.assert_allclose(probabilities[1], [0, 1], atol=1e-6)
  assert probabilities[0, 0] > _odds(_network())[0]


def test_few_choices_count_several_times():
  _, once = _learned(_LOOKS[:1])
  _, twice = _learned([_LOOKS[0], _LOOKS[0]])
  assert once == pytest.approx(twice)


def test_the_critic_learns_how_likely_a_gain_is_and_its_size():
  quiet = dict(critic_epochs=50, critic_rate=.02, learning_rate=1e-9)
  network, figures = _learned(**quiet)
  before, after = (np.array(n.predict(np.array([[.5], [-1.]], np.float32)))
                   for n in (_network(), network))
  assert after[0, 0] > before[0, 0] and after[0, 1] < before[0, 1]
  share = np.log(1 - np.exp(-.3))
  assert abs(after[1, 0] - share) < abs(before[1, 0] - share)
  assert figures['critic_loss'] < _learned(
      **quiet | {'critic_epochs': 1})[1]['critic_loss']
