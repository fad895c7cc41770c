"""Choosers, which score moves; the moves with the highest scores are priced."""

from __future__ import annotations

from typing import Protocol, Sequence

import numpy as np

from gdp_grappler.placers.policy import gain_learning
from gdp_grappler.placers.search.moves import move_filter
from gdp_grappler.placers.search.moves import move_network

# Logit of the probability of a gain, for each move, if there is no network.
_CHANCE = -1.5
# Range of the random numbers that choose between moves of equal logits.
_TIE = 1e-3


class MoveChooser(Protocol):
  """Scores moves of one problem; moves with high scores are priced first."""

  def scores(self, incumbent: np.ndarray, candidates: np.ndarray,
             kinds: Sequence[str]) -> np.ndarray:
    """float [K], scores of moves.

    Args:
      incumbent: int [G], placement before the moves.
      candidates: int [K, G], placement after each move.
      kinds: [K], kinds of the moves.
    """

  def learn(self, chosen: np.ndarray, gained: np.ndarray) -> None:
    """Learns from the prices of moves.

    Args:
      chosen: int [C], indices of the latest candidates that were priced.
      gained: bool [C], whether each of them was better than the incumbent.
    """


class NetworkChooser:
  """Scores by a network's predictions, corrected by the moves priced so far."""

  def __init__(self, describer: move_filter.MoveDescriber,
               network: move_network.MoveNetwork, gain_weight: float) -> None:
    """Prepares scores of one problem.

    Args:
      describer: Describer of the problem's moves.
      network: Network for the features of the describer.
      gain_weight: Weight of the gain, see `move_filter.FilterConfig`.
    """
    self._describer, self._network = describer, network
    self._gain_weight = gain_weight
    self._correction = _Correction()

  def scores(self, incumbent: np.ndarray, candidates: np.ndarray,
             kinds: Sequence[str]) -> np.ndarray:
    """See `MoveChooser`."""
    features = self._describer.describe(incumbent, candidates, kinds)
    logits, gains = self._network.predict(features)
    corrected = self._correction.logits(self._network.standardized(features),
                                        logits)
    return move_filter.gain_scores(corrected, gains, self._gain_weight)

  def learn(self, chosen: np.ndarray, gained: np.ndarray) -> None:
    """See `MoveChooser`."""
    self._correction.learn(chosen, gained)


class RandomChooser:
  """Scores without a network, as a baseline: all moves are equally likely.

  The class learns from the moves priced so far as `NetworkChooser` does. So a
  comparison of both shows the effect of the network's training.
  """

  def __init__(self, describer: move_filter.MoveDescriber,
               network: move_network.MoveNetwork,
               rng: np.random.Generator) -> None:
    """Prepares scores of one problem.

    Args:
      describer: Describer of the problem's moves.
      network: Network whose means and deviations standardize the features.
      rng: Random numbers that choose between moves of equal scores.
    """
    self._describer, self._network, self._rng = describer, network, rng
    self._correction = _Correction()

  def scores(self, incumbent: np.ndarray, candidates: np.ndarray,
             kinds: Sequence[str]) -> np.ndarray:
    """See `MoveChooser`."""
    inputs = self._network.standardized(
        self._describer.describe(incumbent, candidates, kinds))
    logits = self._correction.logits(inputs, np.full(len(inputs), _CHANCE))
    return logits + _TIE * self._rng.random(len(inputs))

  def learn(self, chosen: np.ndarray, gained: np.ndarray) -> None:
    """See `MoveChooser`."""
    self._correction.learn(chosen, gained)


class _Correction:
  """The correction learned in one search, and the latest candidates."""

  def __init__(self) -> None:
    self._learning = gain_learning.GainLearning()
    self._latest: tuple[np.ndarray, np.ndarray] | None = None

  def logits(self, inputs: np.ndarray, logits: np.ndarray) -> np.ndarray:
    """[K], corrected logits of candidates, to which `learn` will refer."""
    self._latest = inputs, logits
    return self._learning.corrected(inputs, logits)

  def learn(self, chosen: np.ndarray, gained: np.ndarray) -> None:
    """See `MoveChooser`."""
    if self._latest is None:
      raise ValueError('Score moves before you tell which of them gained.')
    inputs, logits = self._latest
    self._learning.learn(inputs[chosen], logits[chosen], gained)


def untrained(network: move_network.MoveNetwork,
              rng: np.random.Generator) -> move_network.MoveNetwork:
  """An untrained network with the shape and the scale of another network.

  The weights are initialized as at the start of training (He et al., ICCV
  2015).

  Args:
    network: The other network.
    rng: Random numbers of the weights.
  """
  count, hidden = network.hidden_weights.shape
  return move_network.MoveNetwork(
      network.features, network.mean, network.deviation,
      rng.normal(0, np.sqrt(2 / count), (count, hidden)), np.zeros(hidden),
      rng.normal(0, np.sqrt(1 / hidden), network.weights.shape),
      np.zeros_like(network.bias))
