"""Which of the moves from a placement are priced."""

from __future__ import annotations

from typing import Protocol, Sequence

import numpy as np

from gdp_grappler.placers.policy import gain_learning
from gdp_grappler.placers.search.moves import move_filter
from gdp_grappler.placers.search.moves import move_network

# The logit that a move gains where no network says it.
_CHANCE = -1.5
# Range of the random numbers that decide between moves of equal logits.
_TIE = 1e-3


class MoveChooser(Protocol):
  """Scores moves of one problem; the highest are priced first."""

  def scores(self, incumbent: np.ndarray, candidates: np.ndarray,
             kinds: Sequence[str]) -> np.ndarray:
    """float [K], the more the sooner.

    Args:
      incumbent: int [G], where the moves are from.
      candidates: int [K, G], where they lead.
      kinds: [K], by which rules they were drawn.
    """

  def learn(self, chosen: np.ndarray, gained: np.ndarray) -> None:
    """Hears what became of moves.

    Args:
      chosen: int [C], which of the latest candidates were priced.
      gained: bool [C], which of them were better than the incumbent.
    """


class ByNetwork:
  """What a network expects of moves, corrected by the moves priced so far."""

  def __init__(self, describer: move_filter.MoveDescriber,
               network: move_network.MoveNetwork, gain_weight: float) -> None:
    """Of one problem.

    Args:
      describer: Of that problem.
      network: Knows the features of the describer.
      gain_weight: As of `move_filter.FilterConfig`.
    """
    self._describer, self._network = describer, network
    self._gain_weight = gain_weight
    self._learned = _Learned()

  def scores(self, incumbent: np.ndarray, candidates: np.ndarray,
             kinds: Sequence[str]) -> np.ndarray:
    """See `MoveChooser`."""
    features = self._describer.describe(incumbent, candidates, kinds)
    logits, gains = self._network.predict(features)
    corrected = self._learned.logits(self._network.standardized(features),
                                     logits)
    return move_filter.gain_scores(corrected, gains, self._gain_weight)

  def learn(self, chosen: np.ndarray, gained: np.ndarray) -> None:
    """See `MoveChooser`."""
    self._learned.learn(chosen, gained)


class ByChance:
  """Any move is as good as any other: what a network is compared with.

  It learns from the moves priced so far as `ByNetwork` does, so that a
  comparison of both shows what the network learned before the search.
  """

  def __init__(self, describer: move_filter.MoveDescriber,
               network: move_network.MoveNetwork,
               rng: np.random.Generator) -> None:
    """Of one problem.

    Args:
      describer: Of that problem.
      network: Its scale of features is used, nothing else.
      rng: Decides as long as nothing is learned.
    """
    self._describer, self._network, self._rng = describer, network, rng
    self._learned = _Learned()

  def scores(self, incumbent: np.ndarray, candidates: np.ndarray,
             kinds: Sequence[str]) -> np.ndarray:
    """See `MoveChooser`."""
    inputs = self._network.standardized(
        self._describer.describe(incumbent, candidates, kinds))
    logits = self._learned.logits(inputs, np.full(len(inputs), _CHANCE))
    return logits + _TIE * self._rng.random(len(inputs))

  def learn(self, chosen: np.ndarray, gained: np.ndarray) -> None:
    """See `MoveChooser`."""
    self._learned.learn(chosen, gained)


class _Learned:
  """What was learned in one search, and the latest candidates."""

  def __init__(self) -> None:
    self._learning = gain_learning.GainLearning()
    self._latest: tuple[np.ndarray, np.ndarray] | None = None

  def logits(self, inputs: np.ndarray, logits: np.ndarray) -> np.ndarray:
    """[K], corrected logits of the candidates, which are the latest now."""
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
  """A network of the same shape and scale of features that learned nothing.

  Weights are those that training begins with (He et al., ICCV 2015).

  Args:
    network: Whose shape it has.
    rng: Of the weights.
  """
  count, hidden = network.hidden_weights.shape
  return move_network.MoveNetwork(
      network.features, network.mean, network.deviation,
      rng.normal(0, np.sqrt(2 / count), (count, hidden)), np.zeros(hidden),
      rng.normal(0, np.sqrt(1 / hidden), network.weights.shape),
      np.zeros_like(network.bias))
