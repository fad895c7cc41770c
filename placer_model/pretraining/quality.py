"""How well scores tell the moves that gain from the others."""

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
  """Of a network on a log.

  Attributes:
    moves: How many there are.
    base_rate: Share of them that gain.
    auc: Probability that one that gains has a higher score than one that does
      not, ties half; 0.5 if there are not both.
    kept: Share of those that gain in the best quarter by score.
    kept_gain: The same, each counted by its gain.
  """

  moves: int
  base_rate: float
  auc: float
  kept: float
  kept_gain: float


def of_network(network: move_network.MoveNetwork, log: logs.Log,
               gain_weight: float = _GAIN_WEIGHT) -> Quality:
  """How well a network does; the AUC is that of its probability."""
  logits, gains = network.predict(log.features)
  kept, kept_gain = _kept(move_filter.gain_scores(logits, gains, gain_weight),
                          log)
  return Quality(len(log), float(np.average(log.gaining, weights=log.weights)),
                 area_under_curve(logits, log), kept, kept_gain)


def area_under_curve(scores: np.ndarray, log: logs.Log) -> float:
  """See `Quality.auc`, for scores [R]; weights count."""
  gaining = log.gaining
  if gaining.all() or not gaining.any():
    return .5
  _, place = np.unique(scores, return_inverse=True)
  good = np.bincount(place, np.where(gaining, log.weights, 0.))
  bad = np.bincount(place, np.where(gaining, 0., log.weights))
  below = np.cumsum(bad) - bad / 2
  return float((good * below).sum() / (good.sum() * bad.sum()))


def _kept(scores: np.ndarray, log: logs.Log) -> tuple[float, float]:
  """Shares of moves that gain, and of gains, in the best quarter."""
  order = np.argsort(-scores, kind='stable')
  weights = log.weights[order]
  best = order[np.cumsum(weights) <= _QUARTER * weights.sum()]
  good = np.where(log.gaining, log.weights, 0.)
  gain = good * log.gains
  if not good.sum():
    return 1., 1.
  return (float(good[best].sum() / good.sum()),
          float(gain[best].sum() / gain.sum()))
