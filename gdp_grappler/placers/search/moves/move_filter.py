"""Chooses the moves of a search by the gains that a network predicts."""

from __future__ import annotations

import dataclasses
from typing import Sequence

import numpy as np

from gdp_grappler.features.moves import featurizer
from gdp_grappler.features.moves import schema
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.search.moves import move_model
from gdp_grappler.placers.search.moves import move_network
from gdp_grappler.placers.search.moves import moves as moves_lib

# Kinds of moves. Each kind has a feature of its own for the network. The search
# makes no move of the kind 'repaired' any more. But files of weights contain
# the feature of this kind, so the kind stays.
KINDS = (*moves_lib.Moves.kinds, 'repaired')
# Feature that rises with the estimated step.
_RETIMED = schema.NATIVE.index('retimed_change_s')


@dataclasses.dataclass(frozen=True)
class FilterConfig:
  """How a network filters the moves of a search.

  Attributes:
    draws: Moves drawn for each move that is priced, at least 1.
    unfiltered: Share of the priced moves that are chosen without the network,
      so that the search also finds gains that the network does not predict.
    gain_weight: Exponent of the gain. Moves are ranked by the probability of a
      gain, times the predicted gain to this power. A weight of 0 ranks them by
      the probability alone.
  """

  draws: int = 12
  unfiltered: float = .25
  gain_weight: float = .5


class MoveDescriber:
  """Computes features of moves from the current placement of a search."""

  def __init__(self, problem: placer_lib.Problem) -> None:
    """Prepares the features; every kind of move has one of its own."""
    self._features = featurizer.MoveFeaturizer(
        problem.graph, problem.cluster, problem.evaluator.costs(problem.graph))
    self._columns = {
        kind: column
        for column, kind in enumerate(KINDS, start=len(schema.NATIVE))
    }
    self._incumbent: np.ndarray | None = None
    self._priorities: np.ndarray | None = None

  def set_priorities(self, priorities: np.ndarray | None) -> None:
    """Sets the order of ops.

    Args:
      priorities: float64 [N]; None for first in, first out.
    """
    self._priorities, self._incumbent = priorities, None

  def describe(self, incumbent: np.ndarray, candidates: np.ndarray,
               kinds: Sequence[str]) -> np.ndarray:
    """float32 [K, F], features of moves, named by `schema.names`.

    Args:
      incumbent: int [G], the placement before the moves.
      candidates: int [K, G], placements after each move.
      kinds: [K], kinds of the moves. A kind that is not in `KINDS` has no
        feature.
    """
    self._observe(incumbent)
    native = self._features.describe(candidates)
    result = np.zeros((len(native), native.shape[1] + len(self._columns)),
                      np.float32)
    result[:, :native.shape[1]] = native
    for row, kind in enumerate(kinds):
      if kind in self._columns:
        result[row, self._columns[kind]] = 1
    return result

  def estimates(self, incumbent: np.ndarray,
                candidates: np.ndarray) -> np.ndarray:
    """float32 [K], numbers that rise with the estimated steps of placements.

    An estimate takes much less time than a price (the *retimed* step of
    `featurizer`). It knows neither memories nor another order of the ops.

    Args:
      incumbent: int [G], the placement whose simulated step gives the order.
      candidates: int [K, G], the placements.
    """
    self._observe(incumbent)
    return self._features.describe(candidates)[:, _RETIMED]

  def _observe(self, incumbent: np.ndarray) -> None:
    if self._incumbent is None or (self._incumbent != incumbent).any():
      self._features.observe(incumbent, self._priorities)
      self._incumbent = incumbent.copy()


class MoveFilter(move_model.MoveModel):
  """A `MoveModel` that chooses most moves by a network and some at random."""

  def __init__(
      self, problem: placer_lib.Problem, network: move_network.MoveNetwork,
      config: FilterConfig = FilterConfig()
  ) -> None:
    """Prepares the features of the problem.

    Args:
      problem: G groups.
      network: Predicts the gains of moves.
      config: How the network filters moves.

    Raises:
      ValueError: the network was trained on other features.
    """
    if network.features != schema.names(KINDS):
      raise ValueError('The network was trained on other features of moves.')
    self.draws = config.draws
    self._network, self._config = network, config
    self._describer = MoveDescriber(problem)

  def choose(self, incumbent: np.ndarray, candidates: np.ndarray,
             kinds: Sequence[str], count: int) -> np.ndarray:
    """See `MoveModel`."""
    free = min(round(count * self._config.unfiltered), count)
    scores = self._scores(
        self._describer.describe(incumbent, candidates[free:], kinds[free:]))
    # A move that changes no device would waste a price.
    scores[(candidates[free:] == incumbent).all(axis=1)] = -np.inf
    best = np.argsort(-scores, kind='stable')[:count - free]
    return np.concatenate([np.arange(free), free + best])

  def set_priorities(self, priorities: np.ndarray | None) -> None:
    """See `MoveModel`."""
    self._describer.set_priorities(priorities)

  def _scores(self, features: np.ndarray) -> np.ndarray:
    """float32 [K], scores of moves; the best move has the highest score."""
    logits, gains = self._network.predict(features)
    return gain_scores(logits, gains, self._config.gain_weight)


def gain_scores(logits: np.ndarray, gains: np.ndarray,
                weight: float) -> np.ndarray:
  """[K], scores of moves: log probability plus weighted log gain.

  Args:
    logits: [K], logit of the probability that a move gains.
    gains: [K], logarithm of the gain if the move gains.
    weight: Weight of the logarithm of the gain.
  """
  return -np.logaddexp(0, -logits) + weight * gains
