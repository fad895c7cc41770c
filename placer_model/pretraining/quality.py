"""How well a network's scores separate moves that gain from others."""

from __future__ import annotations

import dataclasses

import numpy as np

from gdp_grappler.placers.policy import policy_config
from gdp_grappler.placers.search.moves import move_network
from gdp_grappler.placers.search.moves import move_scoring
from placer_model.pretraining import logs

# Number of moves that `gdp_policy` prices in a round.
_FEW = policy_config.PolicyConfig().at_once
_GAIN_WEIGHT = move_scoring.GAIN_WEIGHT


@dataclasses.dataclass(frozen=True)
class Quality:
  """Quality of a network on a log.

  Attributes:
    moves: Number of moves in the log.
    base_rate: Share of the moves that gain.
    auc: Probability that a move that gains has a higher score than one that
      does not; ties count half. It is 0.5 if the log lacks one of the two
      kinds.
    kept: Share of the gaining moves that are in the best quarter by score.
    kept_gain: The same share, with each move counted by its gain.
    best_few: Gain of the best of the few moves with the highest scores of a
      round, over the gain of the round's best move. Both are sums over rounds.
  """

  moves: int
  base_rate: float
  auc: float
  kept: float
  kept_gain: float
  best_few: float


def of_network(network: move_network.MoveNetwork, log: logs.Log,
               gain_weight: float = _GAIN_WEIGHT) -> Quality:
  """Returns the quality of a network.

  The AUC is that of the predicted probability of a gain. The other measures use
  the score that searches use.
  """
  logits, gains = network.predict(log.features)
  scores = move_scoring.gain_scores(logits, gains, gain_weight)
  kept, kept_gain = _kept(scores, log)
  return Quality(len(log), float(log.gaining.mean()),
                 area_under_curve(logits, log), kept, kept_gain,
                 best_few(scores, log))


def area_under_curve(scores: np.ndarray, log: logs.Log) -> float:
  """Returns `Quality.auc` for scores [R]."""
  gaining = log.gaining
  if gaining.all() or not gaining.any():
    return .5
  _, place = np.unique(scores, return_inverse=True)
  good = np.bincount(place, gaining.astype(float))
  bad = np.bincount(place, (~gaining).astype(float))
  below = np.cumsum(bad) - bad / 2
  return float((good * below).sum() / (good.sum() * bad.sum()))


def best_few(scores: np.ndarray, log: logs.Log) -> float:
  """Returns `Quality.best_few` for scores [R]; 1 if no move gains."""
  starts = log.starts
  gaining = np.where(log.gaining, log.gains, 0.)
  found = possible = 0.
  for first, end in zip(starts, [*starts[1:], len(log)]):
    gains = gaining[first:end]
    few = np.argsort(-scores[first:end], kind='stable')[:_FEW]
    found += gains[few].max()
    possible += gains.max()
  return float(found / possible) if possible else 1.


def _kept(scores: np.ndarray, log: logs.Log) -> tuple[float, float]:
  """Returns the best quarter's shares of moves that gain, and of gains."""
  order = np.argsort(-scores, kind='stable')
  best = order[:len(log) // 4]
  good = log.gaining.astype(float)
  gain = good * log.gains
  if not good.sum():
    return 1., 1.
  return (float(good[best].sum() / good.sum()),
          float(gain[best].sum() / gain.sum()))
