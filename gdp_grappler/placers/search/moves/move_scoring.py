"""Scores the moves of a search by the gains that a network predicts."""

from __future__ import annotations

from typing import Sequence

import numpy as np

from gdp_grappler.features.moves import featurizer
from gdp_grappler.features.moves import schema
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.search.moves import gain_learning
from gdp_grappler.placers.search.moves import move_network
from gdp_grappler.placers.search.moves import moves as moves_lib

# Kinds of moves. Each kind has a feature of its own for the network. The search
# makes no move of the kind 'repaired' any more. But files of weights contain
# the feature of this kind, so the kind stays.
KINDS = (*moves_lib.Moves.kinds, 'repaired')
# Feature that rises with the estimated step.
_RETIMED = schema.NATIVE.index('retimed_change_s')
# Exponent of the gain. Moves are ranked by the probability of a gain, times the
# predicted gain to this power. 0 would rank them by the probability alone.
GAIN_WEIGHT = .5
# Logit of the probability of a gain, for each move, if there is no network.
_CHANCE = -1.5
# Range of the random numbers that choose between moves of equal logits.
_TIE = 1e-3


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

    An estimate (the *retimed* step of `featurizer`) takes much less time than a
    price. It ignores memories, and ops keep the order of the incumbent's step.

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


class MoveScorer:
  """Scores moves by a network; the moves with the highest scores are priced.

  The moves that were priced so far correct the predictions of the network, if
  the search reports them (`learn`). An object serves one search at a time.
  """

  def __init__(self, describer: MoveDescriber,
               network: move_network.MoveNetwork,
               gain_weight: float = GAIN_WEIGHT) -> None:
    """Prepares scores of one problem.

    Args:
      describer: Describer of the problem's moves.
      network: Predicts the gains of moves.
      gain_weight: Weight of the gain, see `GAIN_WEIGHT`.

    Raises:
      ValueError: the network was trained on other features.
    """
    if network.features != schema.names(KINDS):
      raise ValueError('The network was trained on other features of moves.')
    self._describer, self._network = describer, network
    self._gain_weight = gain_weight
    self._learning = gain_learning.GainLearning()
    # Inputs of the network and logits of the latest candidates.
    self._latest: tuple[np.ndarray, np.ndarray] | None = None

  def scores(self, incumbent: np.ndarray, candidates: np.ndarray,
             kinds: Sequence[str]) -> np.ndarray:
    """float [K], scores of moves.

    Args:
      incumbent: int [G], the placement before the moves.
      candidates: int [K, G], placements after each move.
      kinds: [K], kinds of the moves (`Moves.kinds`).
    """
    features = self._describer.describe(incumbent, candidates, kinds)
    logits, gains = self._network.predict(features)
    return gain_scores(self._corrected(features, logits), gains,
                       self._gain_weight)

  def learn(self, chosen: np.ndarray, gained: np.ndarray) -> None:
    """Learns from the prices of moves.

    Args:
      chosen: int [C], indices of the latest candidates that were priced.
      gained: bool [C], whether each of them was better than the incumbent.

    Raises:
      ValueError: no moves have scores yet.
    """
    if self._latest is None:
      raise ValueError('Score moves before you tell which of them gained.')
    inputs, logits = self._latest
    self._learning.learn(inputs[chosen], logits[chosen], gained)

  def set_priorities(self, priorities: np.ndarray | None) -> None:
    """See `MoveDescriber`."""
    self._describer.set_priorities(priorities)

  def _corrected(self, features: np.ndarray, logits: np.ndarray) -> np.ndarray:
    """[K], corrected logits of candidates, to which `learn` will refer."""
    inputs = self._network.standardized(features)
    self._latest = inputs, logits
    return self._learning.corrected(inputs, logits)


class RandomScorer(MoveScorer):
  """Scores without a network, as a baseline: all moves are equally likely.

  The class learns from the moves priced so far as `MoveScorer` does. So a
  comparison of both shows the effect of the network's training.
  """

  def __init__(self, describer: MoveDescriber,
               network: move_network.MoveNetwork,
               rng: np.random.Generator) -> None:
    """Prepares scores of one problem.

    Args:
      describer: Describer of the problem's moves.
      network: Network whose means and deviations standardize the features.
      rng: Random numbers that choose between moves of equal scores.

    Raises:
      ValueError: the network was trained on other features.
    """
    super().__init__(describer, network)
    self._rng = rng

  def scores(self, incumbent: np.ndarray, candidates: np.ndarray,
             kinds: Sequence[str]) -> np.ndarray:
    """See `MoveScorer`."""
    features = self._describer.describe(incumbent, candidates, kinds)
    logits = self._corrected(features, np.full(len(features), _CHANCE))
    return logits + _TIE * self._rng.random(len(features))


def gain_scores(logits: np.ndarray, gains: np.ndarray,
                weight: float) -> np.ndarray:
  """[K], scores of moves: log probability plus weighted log gain.

  Args:
    logits: [K], logit of the probability that a move gains.
    gains: [K], logarithm of the gain if the move gains.
    weight: Weight of the logarithm of the gain.
  """
  return -np.logaddexp(0, -logits) + weight * gains
