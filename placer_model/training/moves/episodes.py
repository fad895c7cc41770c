"""Episodes: moves drawn from the policy, and their rewards.

In each look, the policy's softmax over the drawn moves determines the order in
which moves are priced. Gumbel noise is added to the logits, and the largest
sums are taken, which draws without replacement (Kool et al., ICML 2019). Each
draw is one choice among the moves that were not chosen before it.
"""

from __future__ import annotations

import dataclasses
from typing import Sequence

import numpy as np

from gdp_grappler import deadlines
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.policy import improving
from gdp_grappler.placers.search import priced_placements
from gdp_grappler.placers.search.moves import move_network
from gdp_grappler.placers.search.moves import move_scoring
from gdp_grappler.placers.search.moves import moves as moves_lib
from placer_model.training.moves import move_config

# Reward of a move that makes a placement fit or run. No reward is larger.
_MOST = 1.


@dataclasses.dataclass(frozen=True, eq=False)
class Look:
  """One step of an episode: the drawn moves, and the policy's choices.

  Attributes:
    features: float32 [K, F], standardized features of the drawn moves.
    chosen: int [A], indices of the moves that were priced, in order.
    rewards: float64 [A], decrease of the logarithm of the price by each of
      these moves; 0 if the price did not fall.
    expected: Reward that the network predicts for a move drawn from the policy.
  """

  features: np.ndarray
  chosen: np.ndarray
  rewards: np.ndarray
  expected: float


class _Sampler:
  """An `improving.Scorer` that samples from the policy and records it."""

  def __init__(self, describer: move_scoring.MoveDescriber,
               network: move_network.MoveNetwork,
               config: move_config.MoveConfig,
               rng: np.random.Generator) -> None:
    self._describer, self._network = describer, network
    self._config, self._rng = config, rng
    # Of each look: features, chosen moves, current placement [G], chosen
    # placements [A, G], and expected reward.
    self.seen: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray,
                          float]] = []

  def scores(self, incumbent: np.ndarray, candidates: np.ndarray,
             kinds: Sequence[str]) -> np.ndarray:
    """See `improving.Scorer`."""
    features = self._describer.describe(incumbent, candidates, kinds)
    logits, gains = self._network.predict(features)
    scores = move_scoring.gain_scores(
        logits, gains, self._config.gain_weight) / self._config.temperature
    drawn = scores + self._rng.gumbel(size=len(scores))
    chosen = np.argsort(-drawn, kind='stable')[:self._config.at_once]
    self.seen.append(
        (self._network.standardized(features), chosen, incumbent.copy(),
         candidates[chosen], _expected(scores, logits, gains)))
    return drawn

  def learn(self, chosen: np.ndarray, gained: np.ndarray) -> None:
    """See `improving.Scorer`; PPO learns after the episode."""


def _expected(scores: np.ndarray, logits: np.ndarray,
              gains: np.ndarray) -> float:
  """Returns the network's own prediction of the reward of one draw."""
  odds = np.exp(scores - np.logaddexp.reduce(scores))
  share = np.minimum(np.exp(gains - np.logaddexp(0, -logits)),
                     1 - np.exp(-_MOST))
  return float(odds @ -np.log1p(-share))


def play(
    problem: placer_lib.Problem, start: np.ndarray,
    network: move_network.MoveNetwork, config: move_config.MoveConfig,
    rng: np.random.Generator, describer: move_scoring.MoveDescriber,
    moves: moves_lib.Moves, deadline: deadlines.Deadline = deadlines.NEVER
) -> tuple[list[Look], priced_placements.PricedPlacements]:
  """Plays one episode; returns its looks and all priced placements.

  Args:
    problem: Problem with G groups.
    start: int [G], the placement that the episode starts with.
    network: The policy.
    config: Settings of the episode.
    rng: Source of moves and choices.
    describer: Computes features of the problem's moves.
    moves: Draws the problem's moves.
    deadline: Time after which no look begins.
  """
  found = priced_placements.PricedPlacements(problem.graph, problem.evaluator)
  found.add([start])
  sampler = _Sampler(describer, network, config, rng)
  improving.Improver(found, sampler, config.episode, rng, moves).run(deadline)
  looks = []
  for features, chosen, here, rows, expected in sampler.seen:
    priced = [k for k, row in enumerate(rows) if found.contains(row)]
    if priced:
      looks.append(
          Look(features, chosen[priced],
               rewards(found.add([here]), found.add(rows[priced])), expected))
  return looks, found


def rewards(before: evaluator_lib.Prices,
            after: evaluator_lib.Prices) -> np.ndarray:
  """Returns the decrease of the logarithm of the price, float64 [A].

  A move that does not lower the price has 0, because the episode does not apply
  it. A move that makes a placement fit has the highest reward. If neither
  placement fits, the reward is the decrease of the logarithm of the overflow.

  Args:
    before: Prices [1] of the placement before the moves.
    after: Prices [A] of the placements after the moves.
  """
  if before.valid[0]:
    gains = np.log(before.seconds[0]) - np.log(after.valid_seconds)
  else:
    overflow = np.maximum(after.overflow_bytes, 1)
    gains = np.log(np.maximum(before.overflow_bytes[0], 1)) - np.log(overflow)
    gains = np.where(np.isfinite(after.seconds), gains, 0.)
    gains = np.where(after.valid, _MOST, gains)
  return np.clip(gains, 0., _MOST)
