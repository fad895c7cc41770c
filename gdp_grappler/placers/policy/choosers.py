"""Who says which of the moves from a placement are priced."""

from __future__ import annotations

from typing import Protocol, Sequence

import numpy as np

from gdp_grappler.placers.search.moves import move_filter
from gdp_grappler.placers.search.moves import move_network


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


class ByNetwork:
  """What a network expects of moves."""

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

  def scores(self, incumbent: np.ndarray, candidates: np.ndarray,
             kinds: Sequence[str]) -> np.ndarray:
    """See `MoveChooser`."""
    logits, gains = self._network.predict(
        self._describer.describe(incumbent, candidates, kinds))
    return move_filter.gain_scores(logits, gains, self._gain_weight)


class ByChance:
  """Any move is as good as any other: what a network is compared with."""

  def __init__(self, rng: np.random.Generator) -> None:
    self._rng = rng

  def scores(self, incumbent: np.ndarray, candidates: np.ndarray,
             kinds: Sequence[str]) -> np.ndarray:
    """See `MoveChooser`."""
    return self._rng.random(len(candidates))


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
