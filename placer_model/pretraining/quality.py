"""How well a network's scores separate moves that gain from others."""

from __future__ import annotations

import dataclasses

import numpy as np

from gdp_grappler.placers.search.moves import move_filter
from gdp_grappler.placers.search.moves import move_network
from placer_model.pretraining import logs

_QUARTER = .25
_GAIN_WEIGHT = move_filter.FilterConfig().gain_weight


@dataclasses.dataclass(frozen=True)
class Quality:
  """Quality of a network on a log; moves count by their weights.

  Attributes:
    moves: Number of moves in the log.
    base_rate: Share of the moves that gain.
    auc: Probability that a move that gains has a higher score than one that
      does not; ties count half. It is 0.5 if the log lacks one of the two
      kinds.
    kept: Share of the gaining moves that are in the best quarter by score.
    kept_gain: The same share, with each move counted by its gain.
  """

  moves: int
  base_rate: float
  auc: float
  kept: float
  kept_gain: float


def of_network(network: move_network.MoveNetwork, log: logs.Log,
               gain_weight: float = _GAIN_WEIGHT) -> Quality:
  """Returns the quality of a network.

  The AUC is that of the predicted probability of a gain. The other measures use
  the score that searches use.
  """
  logits, gains = network.predict(log.features)
  kept, kept_gain = _kept(move_filter.gain_scores(logits, gains, gain_weight),
                          log)
  return Quality(len(log), float(np.average(log.gaining, weights=log.weights)),
                 area_under_curve(logits, log), kept, kept_gain)


def area_under_curve(scores: np.ndarray, log: logs.Log) -> float:
  """Returns `Quality.auc` for scores [R]."""
  gaining = log.gaining
  if gaining.all() or not gaining.any():
    return .5
  _, place = np.unique(scores, return_inverse=True)
  good = np.bincount(place, np.where(gaining, log.weights, 0.))
  bad = np.bincount(place, np.where(gaining, 0., log.weights))
  below = np.cumsum(bad) - bad / 2
  return float((good * below).sum() / (good.sum() * bad.sum()))


def _kept(scores: np.ndarray, log: logs.Log) -> tuple[float, float]:
  """Returns the best quarter's shares of moves that gain, and of gains."""
  order = np.argsort(-scores, kind='stable')
  weights = log.weights[order]
  best = order[np.cumsum(weights) <= _QUARTER * weights.sum()]
  good = np.where(log.gaining, log.weights, 0.)
  gain = good * log.gains
  if not good.sum():
    return 1., 1.
  return (float(good[best].sum() / good.sum()),
          float(gain[best].sum() / gain.sum()))
