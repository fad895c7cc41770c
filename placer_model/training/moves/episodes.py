"""Episodes: moves that are drawn from the policy, and what they brought.

At each look the policy's softmax over the moves that were drawn gives the
order in which they are priced: adding Gumbel noise to the logits and taking the
largest draws without replacement (Kool et al., ICML 2019). Each draw is one
choice, among the moves that were not chosen before it.
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
from gdp_grappler.placers.search.moves import move_filter
from gdp_grappler.placers.search.moves import move_network
from gdp_grappler.placers.search.moves import moves as moves_lib
from placer_model.training.moves import move_config

# Reward of a move that makes a placement fit or run, and the most of any.
_MOST = 1.


@dataclasses.dataclass(frozen=True, eq=False)
class Look:
  """What the policy saw of one placement, and what it chose.

  Attributes:
    features: float32 [K, F], standardized, of the moves that were drawn.
    chosen: int [A], which moves were priced, in order.
    rewards: float64 [A], gain of each in the logarithm of the price; 0 where
      it did not gain.
    expected: Reward that the network expects of a move drawn from the policy.
  """

  features: np.ndarray
  chosen: np.ndarray
  rewards: np.ndarray
  expected: float


class _Sampler:
  """A `choosers.MoveChooser` that draws from the policy and writes it down."""

  def __init__(self, describer: move_filter.MoveDescriber,
               network: move_network.MoveNetwork,
               config: move_config.MoveConfig,
               rng: np.random.Generator) -> None:
    self._describer, self._network = describer, network
    self._config, self._rng = config, rng
    # Features, order of the choice, start [G], chosen placements [A, G], and
    # what is expected, of each look.
    self.seen: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray,
                          float]] = []

  def scores(self, incumbent: np.ndarray, candidates: np.ndarray,
             kinds: Sequence[str]) -> np.ndarray:
    """See `choosers.MoveChooser`."""
    features = self._describer.describe(incumbent, candidates, kinds)
    logits, gains = self._network.predict(features)
    scores = move_filter.gain_scores(
        logits, gains, self._config.gain_weight) / self._config.temperature
    drawn = scores + self._rng.gumbel(size=len(scores))
    chosen = np.argsort(-drawn, kind='stable')[:self._config.at_once]
    self.seen.append(
        (self._network.standardized(features), chosen, incumbent.copy(),
         candidates[chosen], _expected(scores, logits, gains)))
    return drawn

  def learn(self, chosen: np.ndarray, gained: np.ndarray) -> None:
    """See `choosers.Chooser`; PPO learns after the episode."""


def _expected(scores: np.ndarray, logits: np.ndarray,
              gains: np.ndarray) -> float:
  """The network's own prediction of the reward of one draw."""
  odds = np.exp(scores - np.logaddexp.reduce(scores))
  share = np.minimum(np.exp(gains - np.logaddexp(0, -logits)),
                     1 - np.exp(-_MOST))
  return float(odds @ -np.log1p(-share))


def play(
    problem: placer_lib.Problem, start: np.ndarray,
    network: move_network.MoveNetwork, config: move_config.MoveConfig,
    rng: np.random.Generator, describer: move_filter.MoveDescriber,
    moves: moves_lib.Moves, deadline: deadlines.Deadline = deadlines.NEVER
) -> tuple[list[Look], priced_placements.PricedPlacements]:
  """One episode: its looks, and all that it has priced.

  Args:
    problem: G groups.
    start: int [G], the placement that it begins with.
    network: The policy.
    config: Numbers.
    rng: Of the moves and choices.
    describer: Of the problem.
    moves: Of the problem.
    deadline: No look begins afterwards.
  """
  found = priced_placements.PricedPlacements(problem.graph, problem.evaluator)
  found.see([start])
  sampler = _Sampler(describer, network, config, rng)
  improving.Improver(found, describer, sampler, config.episode, rng,
                     moves).run(deadline)
  looks = []
  for features, chosen, here, rows, expected in sampler.seen:
    priced = [k for k, row in enumerate(rows) if found.knows(row)]
    if priced:
      looks.append(
          Look(features, chosen[priced],
               rewards(found.see([here]), found.see(rows[priced])), expected))
  return looks, found


def rewards(before: evaluator_lib.Prices,
            after: evaluator_lib.Prices) -> np.ndarray:
  """float64 [A], what moves gain in the logarithm of the price.

  A move that does not gain has 0: the placement before it stays. A move that
  makes a placement fit has the highest reward; where nothing fits, it is the
  logarithm of the overflow that counts.

  Args:
    before: [1], of the placement before the moves.
    after: [A], of the placements after them.
  """
  if before.valid[0]:
    gains = np.log(before.seconds[0]) - np.log(after.valid_seconds)
  else:
    overflow = np.maximum(after.overflow_bytes, 1)
    gains = np.log(np.maximum(before.overflow_bytes[0], 1)) - np.log(overflow)
    gains = np.where(np.isfinite(after.seconds), gains, 0.)
    gains = np.where(after.valid, _MOST, gains)
  return np.clip(gains, 0., _MOST)
