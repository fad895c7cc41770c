"""Training of the move network on one graph.

`MoveTrainer.step` is one iteration.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import time
from typing import Iterator, Sequence

import numpy as np

from gdp_grappler import deadlines
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.policy import drafts as drafts_lib
from gdp_grappler.placers.search import priced_placements
from gdp_grappler.placers.search.moves import move_network
from gdp_grappler.placers.search.moves import move_scoring
from gdp_grappler.placers.search.moves import moves as moves_lib
from placer_model.training.moves import episodes
from placer_model.training.moves import move_config
from placer_model.training.moves import move_learner
from placer_model.training.moves import move_state

# Makes the random numbers of the test episodes differ from those of the
# iterations.
_SKILL_STREAM = 1 << 34
# Largest number of episodes in an iteration, as a multiple of the rollouts. If
# a graph has few moves, episodes are short and many are needed.
_PATIENCE = 4


@dataclasses.dataclass(frozen=True)
class Report:
  """Statistics of one iteration.

  Attributes:
    iteration: Number of the iteration, from 1.
    gain_per_price: Mean decrease of the logarithm of the price by the chosen
      moves.
    gaining_share: Share of the chosen moves that lowered the price.
    best_step_time_s: Best price of the run in seconds.
    evaluations: Placements priced in the run.
    entropy: Mean entropy of a choice in nats, before the update.
    kl: Mean divergence per choice of the updated from the sampled policy.
    clip_fraction: Share of the choices whose probability ratio left the
      clipping range.
    loss: Loss of PPO.
    critic_loss: Loss of the predictions of gains.
  """

  iteration: int
  gain_per_price: float
  gaining_share: float
  best_step_time_s: float
  evaluations: int
  entropy: float = 0.
  kl: float = 0.
  clip_fraction: float = 0.
  loss: float = 0.
  critic_loss: float = 0.


class MoveTrainer:
  """Trains a network, which other graphs may share, on one graph.

  Attributes:
    problem: Problem with G groups.
    learner: The network and its optimizers.
    state: Counters and the best placements.
    seed: Seed of moves and choices.
  """

  def __init__(self, problem: placer_lib.Problem,
               learner: move_learner.MoveLearner,
               config: move_config.MoveConfig, seed: int) -> None:
    """Prices nothing yet.

    Args:
      problem: Problem with G groups.
      learner: The network and its optimizers.
      config: Settings of the training.
      seed: Seed of moves and choices.
    """
    self.problem, self.learner = problem, learner
    self.seed, self._config = seed, config
    self.state = move_state.MoveState(problem.allowed, config.elites)

  @property
  def has_begun(self) -> bool:
    """Whether the drafts are priced."""
    return bool(len(self.state.drafts))

  def begin(self, baselines: Sequence[placement_lib.Placement],
            deadline: deadlines.Deadline = deadlines.NEVER) -> None:
    """Prices the baselines and the drafts.

    Args:
      baselines: Placements by other placers.
      deadline: Time after which slow drafts are left out.
    """
    with self._clock():
      drafts = drafts_lib.Drafts(self.problem, self._config.drafts,
                                 self._describer, deadline)
      rows = drafts.rows[:self._config.drafts.prices]
      first = self.problem.graph.first_ops
      self._price(np.stack([b.devices[first] for b in baselines]),
                  move_state.BASELINE)
      self._price(rows, move_state.DRAFT)
      self.state.drafts = rows

  def offer(self, placements: Sequence[placement_lib.Placement],
            origin: str) -> None:
    """Prices placements by other placers.

    Args:
      placements: At least one placement of the ops.
      origin: Origin of the placements, one of `move_state.ORIGINS`.
    """
    first = self.problem.graph.first_ops
    self._price(np.stack([p.devices[first] for p in placements]), origin)

  def step(self, deadline: deadlines.Deadline = deadlines.NEVER) -> Report:
    """Runs one iteration: episodes, then updates of PPO and the critic.

    Args:
      deadline: Time after which no look begins.
    """
    with self._clock():
      looks = self._play(deadline)
      figures = self.learner.learn(looks) if looks else {}
    every = np.concatenate([look.rewards for look in looks] or [np.zeros(1)])
    state = self.state
    state.iteration += 1
    state.gains.append(float(every.mean()))
    return Report(state.iteration, state.gains[-1], float((every > 0).mean()),
                  state.best_step_time_s, state.total_evaluations, **figures)

  def best_placement(self) -> placement_lib.Placement:
    """Returns the best placement of the ops; one has to fit."""
    best = self.state.best_decisions
    assert best is not None
    return placement_lib.from_groups(self.problem.graph, best,
                                     self.problem.cluster)

  def skill(self, network: move_network.MoveNetwork) -> float:
    """Returns a network's mean gain per price in episodes from the drafts.

    The random numbers are the same for each network, so equal networks have
    equal skill.

    Args:
      network: Any network for the problem's moves.
    """
    every = [np.zeros(0)]
    for number, row in enumerate(self.state.drafts[:self._config.skill_drafts]):
      rng = np.random.default_rng([self.seed, _SKILL_STREAM, number])
      looks, found = episodes.play(self.problem, row, network, self._config,
                                   rng, self._describer, self._moves)
      self.state.record(found.devices, found.prices.valid_seconds,
                        move_state.POLICY, len(found.prices))
      every += [look.rewards for look in looks]
    gains = np.concatenate(every)
    return float(gains.mean()) if len(gains) else 0.

  def _play(self, deadline: deadlines.Deadline) -> list[episodes.Look]:
    """Returns the looks of as many episodes as an iteration needs."""
    config, looks = self._config, list[episodes.Look]()
    rng = np.random.default_rng([self.seed, self.state.iteration])
    network = self.learner.network()
    missing = config.rollouts
    for _ in range(_PATIENCE * config.rollouts):
      if missing <= 0 or deadline.passed or not self._moves.movable.size:
        break
      seen, found = episodes.play(self.problem, self._start(rng), network,
                                  config, rng, self._describer, self._moves,
                                  deadline)
      self.state.record(found.devices, found.prices.valid_seconds,
                        move_state.POLICY, len(found.prices))
      looks += seen
      missing -= sum(len(look.chosen) for look in seen)
    return looks

  def _start(self, rng: np.random.Generator) -> np.ndarray:
    """Returns one of the best placements so far, or a draft, int32 [G]."""
    state = self.state
    best = len(state.elites) and rng.random() < self._config.from_best
    rows = state.elites if best else state.drafts
    return rows[int(rng.integers(len(rows)))]

  def _price(self, rows: np.ndarray, origin: str) -> None:
    found = priced_placements.PricedPlacements(self.problem.graph,
                                               self.problem.evaluator)
    found.add(rows)
    self.state.record(found.devices, found.prices.valid_seconds, origin,
                      len(found.prices))

  @functools.cached_property
  def _describer(self) -> move_scoring.MoveDescriber:
    return move_scoring.MoveDescriber(self.problem)

  @functools.cached_property
  def _moves(self) -> moves_lib.Moves:
    return moves_lib.Moves(self.problem)

  @contextlib.contextmanager
  def _clock(self) -> Iterator[None]:
    start = time.monotonic()
    yield
    self.state.seconds += time.monotonic() - start
