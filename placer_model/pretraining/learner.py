"""Trains a `MoveNetwork` by Adam, in NumPy, because the network is small.

The first output learns by the logistic loss whether a move gains. The second
output learns the logarithm of the gain by half its squared error, from the
moves that gain.

A search prices only the moves of a round with the highest scores. So a third
loss compares the scores of all moves of a round with their gains. The loss is
the cross entropy between two distributions over these moves (ListNet: Cao et
al., ICML 2007). The first distribution is proportional to the squared gains.
The second distribution is the softmax of the scores.
"""

from __future__ import annotations

import dataclasses
from typing import Iterator, Sequence

import numpy as np

from gdp_grappler.placers.search.moves import move_network
from gdp_grappler.placers.search.moves import move_scoring
from placer_model.pretraining import logs
from placer_model.pretraining import pretrain_config

# Decays of Adam's moments (Kingma and Ba, ICLR 2015).
_BETAS = (.9, .999)
_TINY = 1e-8  # Adam's least divisor, from the same paper.
_TRAINED = ('hidden_weights', 'hidden_bias', 'weights', 'bias')
# Least divisor of a feature, so that a constant feature stays small.
_LEAST_DEVIATION = 1e-2
# Factor of the scores in the softmax over the moves of a round.
_SHARPNESS = 2.
_GAIN_WEIGHT = move_scoring.GAIN_WEIGHT


@dataclasses.dataclass(frozen=True)
class Losses:
  """Mean losses over the moves of one pass.

  Attributes:
    logistic: Loss of the prediction whether a move gains.
    gain: Loss of the prediction of the gain's size.
    order: Loss of the order that the scores give to the moves of a round.
  """

  logistic: float
  gain: float
  order: float


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
    """Trains for one pass over a log, with its rounds in random order."""
    totals = np.zeros(3)
    for batch in _batches(log, self._config.batch, rng):
      totals += self._update(batch)
    return Losses(*(totals / max(len(log), 1)).tolist())

  def _update(self, batch: logs.Log) -> np.ndarray:
    """Takes one step; returns the three losses, summed over the moves."""
    network = self.network
    x = network.standardized(batch.features)
    before = x @ network.hidden_weights + network.hidden_bias
    hidden = np.maximum(before, 0)
    logits, gains = (hidden @ network.weights + network.bias).T
    gaining = batch.gaining
    error = np.where(gaining,
                     gains - np.log(np.maximum(batch.gains, logs.LEAST_GAIN)),
                     0.)
    share = 1 / len(batch)
    scores = move_scoring.gain_scores(logits, gains, _GAIN_WEIGHT)
    order, slopes = _order_loss(scores, batch)
    slopes *= self._config.rank_share
    outer = np.stack([
        share * (_sigmoid(logits) - gaining) + slopes * _sigmoid(-logits),
        share * self._config.gain_share * error + slopes * _GAIN_WEIGHT
    ], 1).astype(np.float32)
    inner = (outer @ network.weights.T) * (before > 0)
    self._step({
        'hidden_weights': x.T @ inner, 'hidden_bias': inner.sum(axis=0),
        'weights': hidden.T @ outer, 'bias': outer.sum(axis=0)
    })
    logistic = np.logaddexp(0, logits) - gaining * logits
    return np.array([
        float(logistic.sum()),
        float((error**2 / 2).sum()), order * len(batch)
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


def trained(
    names: tuple[str,
                 ...], log: logs.Log, config: pretrain_config.PretrainConfig,
    rng: np.random.Generator) -> tuple[move_network.MoveNetwork, Losses]:
  """Returns the mean of trained networks, and the mean losses of a last pass.

  The mean tells good moves better than most of the networks alone (L. Hansen
  and P. Salamon, "Neural Network Ensembles", PAMI 1990).

  Args:
    names: [F], names of the features.
    log: Log to learn from.
    config: Settings of the run.
    rng: Source of the weights and of the order of the rounds.
  """
  networks, losses = [], []
  for _ in range(config.networks):
    learner = Learner(first_network(names, log, config.hidden, rng), config)
    losses.append([learner.learn(log, rng) for _ in range(config.passes)][-1])
    networks.append(learner.network)
  means = np.mean([dataclasses.astuple(each) for each in losses], axis=0)
  return mean_of(networks), Losses(*means.tolist())


def mean_of(
    networks: Sequence[move_network.MoveNetwork]) -> move_network.MoveNetwork:
  """Returns one network whose outputs are the mean outputs of some networks.

  Args:
    networks: At least one, with the same features, means and deviations.
  """
  first = networks[0]
  return move_network.MoveNetwork(
      first.features, first.mean, first.deviation,
      np.concatenate([n.hidden_weights for n in networks], axis=1),
      np.concatenate([n.hidden_bias for n in networks]),
      np.concatenate([n.weights for n in networks]) / len(networks),
      np.mean([n.bias for n in networks], axis=0))


def _batches(log: logs.Log, size: int,
             rng: np.random.Generator) -> Iterator[logs.Log]:
  """Yields the rounds of a log in random order, about `size` moves at once."""
  starts = log.starts
  ends = np.append(starts[1:], len(log))
  rows: list[np.ndarray] = []
  moves = 0
  for number in rng.permutation(len(starts)):
    rows.append(np.arange(starts[number], ends[number]))
    moves += len(rows[-1])
    if moves >= size:
      yield _taken(log, rows)
      rows, moves = [], 0
  if rows:
    yield _taken(log, rows)


def _taken(log: logs.Log, rows: Sequence[np.ndarray]) -> logs.Log:
  """Returns the log of some rounds, each given by its rows."""
  taken = np.concatenate(rows)
  return logs.Log(
      log.features[taken], log.gains[taken],
      np.repeat(np.arange(len(rows)), list(map(len, rows))).astype(np.int32))


def _order_loss(scores: np.ndarray,
                batch: logs.Log) -> tuple[float, np.ndarray]:
  """Returns the mean loss of the order, and its derivatives by scores [R].

  Rounds in which no move gains have no order.
  """
  starts = batch.starts
  wanted = np.where(batch.gaining, batch.gains, 0.)**2
  totals = np.add.reduceat(wanted, starts)
  counted = totals > 0
  wanted /= np.where(counted, totals, 1.)[batch.rounds]
  logits = _SHARPNESS * scores
  logits -= np.maximum.reduceat(logits, starts)[batch.rounds]
  sums = np.add.reduceat(np.exp(logits), starts)[batch.rounds]
  share = counted[batch.rounds] / max(int(counted.sum()), 1)
  loss = float((share * wanted * (np.log(sums) - logits)).sum())
  return loss, _SHARPNESS * share * (np.exp(logits) / sums - wanted)


def _sigmoid(x: np.ndarray) -> np.ndarray:
  return np.exp(-np.logaddexp(0, -x))
