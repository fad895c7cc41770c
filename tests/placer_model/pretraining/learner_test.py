"""Gradients against differences, and something to learn."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from gdp_grappler.placers.search.moves import move_scoring
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
                  np.arange(count, dtype=np.int32) // 20)


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
  assert losses[-1].order < .9 * losses[0].order
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
    moves = (logistic + _CONFIG.gain_share * error**2 / 2).mean()
    return float(moves + _CONFIG.rank_share * _order_loss(logits, gains, log))

  start = getattr(before.network, name)
  moved = getattr(after.network, name) - start
  for index in np.ndindex(start.shape):
    step = np.zeros_like(start)
    step[index] = 1e-2
    slope = (loss(start + step) - loss(start - step)) / 2e-2
    if abs(slope) > 1e-3:
      assert np.sign(moved[index]) == -np.sign(slope)


def _order_loss(logits: np.ndarray, gains: np.ndarray, log: logs.Log) -> float:
  """The cross entropy of the order, round by round."""
  losses = []
  scores = -np.logaddexp(0, -logits) + .5 * gains
  for number in range(log.rounds[-1] + 1):
    rows = log.rounds == number
    wanted = np.where(log.gaining, log.gains, 0)[rows]**2
    chosen = np.exp(2 * scores[rows])
    if wanted.any():
      shares = np.log(chosen / chosen.sum())
      losses.append(-(wanted / wanted.sum() * shares).sum())
  return float(np.mean(losses))


def test_the_loss_of_the_order_is_that_of_each_round():
  log = _log(200, 0)
  logits, gains = _learner(log).network.predict(log.features)
  scores = move_scoring.gain_scores(logits, gains, .5)
  loss, slopes = learner_lib._order_loss(scores.astype(float), log)
  assert loss == pytest.approx(_order_loss(logits, gains, log), rel=1e-4)
  assert slopes.reshape(-1, 20).sum(axis=1) == pytest.approx(
      np.zeros(10), abs=1e-6)


def test_the_mean_of_networks_has_the_mean_of_their_outputs():
  log = _log(50, 0)
  networks = [
      learner_lib.first_network(('a', 'b', 'c'), log, 8,
                                np.random.default_rng(seed))
      for seed in range(3)
  ]
  mean = learner_lib.mean_of(networks)
  assert mean.hidden_bias.shape == (24,)
  for k, outputs in enumerate(mean.predict(log.features)):
    each = [network.predict(log.features)[k] for network in networks]
    assert outputs == pytest.approx(np.mean(each, axis=0), abs=1e-5)


def test_several_networks_are_trained():
  log = _log(1000, 0)
  config = dataclasses.replace(_CONFIG, networks=2, passes=3)
  network, losses = learner_lib.trained(('a', 'b', 'c'), log, config,
                                        np.random.default_rng(0))
  assert network.hidden_bias.shape == (16,)
  assert quality.of_network(network, log).best_few > .9
  assert np.isfinite(dataclasses.astuple(losses)).all()
