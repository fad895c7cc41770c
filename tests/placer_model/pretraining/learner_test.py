"""Gradients against differences, and something to learn."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from placer_model.pretraining import learner as learner_lib
from placer_model.pretraining import logs
from placer_model.pretraining import pretrain_config
from placer_model.pretraining import quality

_CONFIG = dataclasses.replace(pretrain_config.CONFIGS['small'], hidden=8,
                              batch=256, learning_rate=1e-2, gain_share=.5)


def _log(count: int, seed: int) -> logs.Log:
  """What gains has a + b > 0, and gains the more the larger c is."""
  rng = np.random.default_rng(seed)
  features = rng.normal(size=(count, 3)).astype(np.float32)
  gains = np.where(features[:, 0] + features[:, 1] > 0,
                   np.exp(features[:, 2] - 5), -.1)
  return logs.Log(features, gains.astype(np.float32),
                  np.ones(count, np.float32))


def _learner(log: logs.Log) -> learner_lib.Learner:
  network = learner_lib.first_network(('a', 'b', 'c'), log, 8,
                                      np.random.default_rng(0))
  return learner_lib.Learner(network, _CONFIG)


def test_learns_who_gains_and_how_much():
  log, test = _log(4000, 0), _log(1000, 1)
  learner, rng = _learner(log), np.random.default_rng(0)
  losses = [learner.learn(log, rng) for _ in range(30)]
  assert losses[-1].logistic < .2 < losses[0].logistic
  assert losses[-1].gain < .2 * losses[0].gain
  assert quality.of_network(learner.network, test).auc > .98
  _, gains = learner.network.predict(test.features)
  good = test.gaining
  assert np.corrcoef(gains[good], np.log(test.gains[good]))[0, 1] > .9


@pytest.mark.parametrize('name', ['hidden_weights', 'weights', 'bias'])
def test_the_first_step_goes_downhill(name):
  # Adam's first step is the sign of the gradient times the rate.
  log = _log(200, 0)
  before = _learner(log)
  after = _learner(log)
  after.learn(log, np.random.default_rng(0))

  def loss(array: np.ndarray) -> float:
    network = dataclasses.replace(before.network, **{name: array})
    logits, gains = network.predict(log.features)
    logistic = np.logaddexp(0, logits) - log.gaining * logits
    error = np.where(log.gaining, gains - np.log(np.maximum(log.gains, 1e-6)),
                     0)
    return float((logistic + _CONFIG.gain_share * error**2 / 2).mean())

  start = getattr(before.network, name)
  moved = getattr(after.network, name) - start
  for index in np.ndindex(start.shape):
    step = np.zeros_like(start)
    step[index] = 1e-2
    slope = (loss(start + step) - loss(start - step)) / 2e-2
    if abs(slope) > 1e-3:
      assert np.sign(moved[index]) == -np.sign(slope)


def test_goes_on_as_if_it_had_not_been_interrupted():
  log = _log(500, 0)
  whole, first = _learner(log), _learner(log)
  for learner in (whole, first):
    learner.learn(log, np.random.default_rng(1))
  second = learner_lib.Learner.restored(('a', 'b', 'c'), first.state(), _CONFIG)
  for learner in (whole, second):
    learner.learn(log, np.random.default_rng(2))
  assert whole.network.digest == second.network.digest


def test_a_state_of_another_size_is_refused():
  state = _learner(_log(50, 0)).state()
  with pytest.raises(KeyError):
    learner_lib.Learner.restored(('a', 'b', 'c'), {}, _CONFIG)
  with pytest.raises(ValueError, match='shape'):
    learner_lib.Learner.restored(('a', 'b'), state, _CONFIG)
