"""Chooses the moves of a search that a network thinks will gain most."""

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
from gdp_grappler.placers.search.moves import repair as repair_lib

# Of the moves that a network is told of.
KINDS = (*moves_lib.Moves.kinds, repair_lib.KIND)


@dataclasses.dataclass(frozen=True)
class FilterConfig:
  """How much a search listens to a network.

  Attributes:
    draws: Moves drawn for each that is priced, at least 1.
    unfiltered: Share of the priced moves that the network has no say in, so
      that what it does not know of is found as well.
    gain_weight: What the expected gain counts beside the probability of a
      gain: 0 ranks by probability, 1 by the product of the two.
    repair: How often sets are placed anew.
  """

  draws: int = 12
  unfiltered: float = .25
  gain_weight: float = .5
  repair: repair_lib.RepairConfig = repair_lib.RepairConfig()

  def __post_init__(self) -> None:
    if self.draws < 1:
      raise ValueError(f'draws is {self.draws}; give 1 or more.')
    if not 0 <= self.unfiltered <= 1:
      raise ValueError(f'unfiltered is {self.unfiltered}; give a share.')
    if not 0 <= self.gain_weight < np.inf:
      raise ValueError(f'gain_weight is {self.gain_weight}; give 0 or more.')


class MoveDescriber:
  """Features of moves from whatever placement a search is at."""

  def __init__(self, problem: placer_lib.Problem) -> None:
    """Lays the problem out; every kind of move gets a feature."""
    self._features = featurizer.MoveFeaturizer(
        problem.graph, problem.cluster, problem.evaluator.costs(problem.graph))
    self._columns = {
        kind: column
        for column, kind in enumerate(KINDS, start=len(schema.NATIVE))
    }
    self._allowed = problem.allowed
    self._incumbent: np.ndarray | None = None
    self._priorities: np.ndarray | None = None

  def ordered(self, priorities: np.ndarray | None) -> None:
    """Ops run by these from now on, float64 [N]; None: first in, first out."""
    self._priorities, self._incumbent = priorities, None

  def describe(self, incumbent: np.ndarray, candidates: np.ndarray,
               kinds: Sequence[str]) -> np.ndarray:
    """float32 [K, F] of `schema.names`; a new kind has no feature.

    Args:
      incumbent: int [G].
      candidates: int [K, G].
      kinds: [K].
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

  def repaired(self, incumbent: np.ndarray, candidates: np.ndarray,
               kinds: Sequence[str], config: repair_lib.RepairConfig,
               rng: np.random.Generator) -> list[str]:
    """Kinds [K] of moves, some of which lead elsewhere now (`repair`).

    Args:
      incumbent: int [G].
      candidates: int32 [K, G]; changed in place.
      kinds: [K].
      config: How often.
      rng: Of the search.
    """
    if not config.share:
      return list(kinds)
    self._observe(incumbent)
    done = repair_lib.repair(config, self._features, self._allowed, candidates,
                             rng)
    return [
        repair_lib.KIND if repaired else kind
        for kind, repaired in zip(kinds, done)
    ]

  def _observe(self, incumbent: np.ndarray) -> None:
    if self._incumbent is None or (self._incumbent != incumbent).any():
      self._features.observe(incumbent, self._priorities)
      self._incumbent = incumbent.copy()


class MoveFilter(move_model.MoveModel):
  """A `MoveModel` that prices the best moves by a network, and some others."""

  def __init__(
      self, problem: placer_lib.Problem, network: move_network.MoveNetwork,
      config: FilterConfig = FilterConfig()
  ) -> None:
    """Lays the problem out.

    Raises:
      ValueError: the network knows other features.
    """
    if network.features != schema.names(KINDS):
      raise ValueError('The network was trained on other features of moves.')
    self.draws = config.draws
    self._network, self._config = network, config
    self._describer = MoveDescriber(problem)

  def amended(self, incumbent: np.ndarray, candidates: np.ndarray,
              kinds: Sequence[str], rng: np.random.Generator) -> list[str]:
    """See `MoveModel`."""
    return self._describer.repaired(incumbent, candidates, kinds,
                                    self._config.repair, rng)

  def choose(self, incumbent: np.ndarray, candidates: np.ndarray,
             kinds: Sequence[str], count: int) -> np.ndarray:
    """See `MoveModel`."""
    if self.draws == 1:
      return np.arange(count)
    free = min(round(count * self._config.unfiltered), count)
    scores = self._scores(
        self._describer.describe(incumbent, candidates[free:], kinds[free:]))
    # What leads nowhere tells nothing.
    scores[(candidates[free:] == incumbent).all(axis=1)] = -np.inf
    best = np.argsort(-scores, kind='stable')[:count - free]
    return np.concatenate([np.arange(free), free + best])

  def ordered(self, priorities: np.ndarray | None) -> None:
    """See `MoveModel`."""
    self._describer.ordered(priorities)

  def told(self, gains: np.ndarray) -> None:
    """See `MoveModel`; the network stays as it is."""

  def _scores(self, features: np.ndarray) -> np.ndarray:
    """float32 [K], logarithms of how much is to be expected of moves."""
    logits, gains = self._network.predict(features)
    return gain_scores(logits, gains, self._config.gain_weight)


def gain_scores(logits: np.ndarray, gains: np.ndarray,
                weight: float) -> np.ndarray:
  """[K], the logarithm of the probability and, with a weight, of the gain."""
  return -np.logaddexp(0, -logits) + weight * gains
