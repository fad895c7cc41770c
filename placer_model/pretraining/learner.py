"""Trains a `MoveNetwork` by Adam, in NumPy, because the network is small.

The first output learns by the logistic loss whether a move gains. The second
output learns the logarithm of the gain by half its squared error, from the
moves that gain. Both losses are weighted by the weights of the moves.
"""

from __future__ import annotations

import dataclasses
from typing import Mapping

import numpy as np

from gdp_grappler.placers.search.moves import move_network
from placer_model.pretraining import logs
from placer_model.pretraining import pretrain_config

# Constants of Adam (Kingma and Ba, ICLR 2015): decays, and the least divisor.
_BETAS = (.9, .999)
_TINY = 1e-8
_TRAINED = ('hidden_weights', 'hidden_bias', 'weights', 'bias')
_LEAST_DEVIATION = 1e-2


@dataclasses.dataclass(frozen=True)
class Losses:
  """Mean losses over the moves of one pass.

  Attributes:
    logistic: Loss of the prediction whether a move gains.
    gain: Loss of the prediction of the gain's size.
  """

  logistic: float
  gain: float


class Learner:
  """A network in training.

  Attributes:
    network: The current network.
  """

  def __init__(self, network: move_network.MoveNetwork,
               config: pretrain_config.PretrainConfig) -> None:
    """Starts with a network, and with moments of zero."""
    self.network = network
    self._config = config
    self._updates = 0
    self._moments = {
        f'{order}:{name}': np.zeros_like(getattr(network, name))
        for order in ('first', 'second') for name in _TRAINED
    }

  def learn(self, log: logs.Log, rng: np.random.Generator) -> Losses:
    """Trains for one pass over a log, in random order."""
    order = rng.permutation(len(log))
    totals, weight = np.zeros(2), 0.
    for first in range(0, len(order), self._config.batch):
      rows = np.sort(order[first:first + self._config.batch])
      batch = logs.Log(log.features[rows], log.gains[rows], log.weights[rows])
      totals += self._update(batch)
      weight += float(batch.weights.sum())
    return Losses(*(totals / max(weight, 1e-30)).tolist())

  def state(self) -> dict[str, np.ndarray]:
    """Returns the arrays that `restored` needs."""
    arrays = {
        field.name: getattr(self.network, field.name)
        for field in dataclasses.fields(self.network)
        if field.name != 'features'
    }
    return {'updates': np.array(self._updates), **arrays, **self._moments}

  @classmethod
  def restored(cls, names: tuple[str, ...], state: Mapping[str, np.ndarray],
               config: pretrain_config.PretrainConfig) -> Learner:
    """Returns a learner with the state of another one.

    Args:
      names: [F], names of the features.
      state: Result of `state` of the other learner.
      config: Settings of both learners.

    Raises:
      KeyError: an array is missing.
      ValueError: an array has another shape.
    """
    arrays = {
        field.name: state[field.name]
        for field in dataclasses.fields(move_network.MoveNetwork)
        if field.name != 'features'
    }
    result = cls(move_network.MoveNetwork(names, **arrays), config)
    for name, now in result._moments.items():
      result._moments[name] = state[name].reshape(now.shape).astype(np.float32)
    result._updates = int(state['updates'])
    return result

  def _update(self, batch: logs.Log) -> np.ndarray:
    """Takes one step; returns both losses, summed by weight."""
    network = self.network
    x = network.standardized(batch.features)
    before = x @ network.hidden_weights + network.hidden_bias
    hidden = np.maximum(before, 0)
    logits, gains = (hidden @ network.weights + network.bias).T
    gaining = batch.gaining
    error = np.where(gaining,
                     gains - np.log(np.maximum(batch.gains, logs.LEAST_GAIN)),
                     0.)
    share = batch.weights / batch.weights.sum()
    outer = np.stack([
        share *
        (_sigmoid(logits) - gaining), share * self._config.gain_share * error
    ], 1).astype(np.float32)
    inner = (outer @ network.weights.T) * (before > 0)
    self._step({
        'hidden_weights': x.T @ inner, 'hidden_bias': inner.sum(axis=0),
        'weights': hidden.T @ outer, 'bias': outer.sum(axis=0)
    })
    logistic = np.logaddexp(0, logits) - gaining * logits
    return np.array([
        float((batch.weights * logistic).sum()),
        float((batch.weights * error**2 / 2).sum())
    ])

  def _step(self, gradients: dict[str, np.ndarray]) -> None:
    """Updates the weights by Adam (Kingma and Ba, ICLR 2015)."""
    self._updates += 1
    changed = {}
    for name, gradient in gradients.items():
      moments = []
      for order, beta, power in (('first', _BETAS[0], 1), ('second', _BETAS[1],
                                                           2)):
        key = f'{order}:{name}'
        moment = beta * self._moments[key] + (1 - beta) * gradient**power
        self._moments[key] = moment.astype(np.float32)
        moments.append(moment / (1 - beta**self._updates))
      changed[name] = getattr(
          self.network, name) - self._config.learning_rate * moments[0] / (
              np.sqrt(moments[1]) + _TINY)
    self.network = dataclasses.replace(self.network, **changed)


def first_network(names: tuple[str, ...], log: logs.Log, hidden: int,
                  rng: np.random.Generator) -> move_network.MoveNetwork:
  """Returns an untrained network that standardizes features.

  Args:
    names: [F], names of the features.
    log: Log from which the features' means and deviations are computed.
    hidden: Number of hidden units.
    rng: Source of the weights (He et al., ICCV 2015).
  """
  count = len(names)
  return move_network.MoveNetwork(
      names, log.features.mean(axis=0),
      np.maximum(log.features.std(axis=0), _LEAST_DEVIATION),
      rng.normal(0, np.sqrt(2 / count), (count, hidden)), np.zeros(hidden),
      rng.normal(0, np.sqrt(1 / hidden), (hidden, move_network.OUTPUTS)),
      np.zeros(move_network.OUTPUTS))


def _sigmoid(x: np.ndarray) -> np.ndarray:
  return np.exp(-np.logaddexp(0, -x))
