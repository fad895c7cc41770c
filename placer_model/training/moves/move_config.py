"""The numbers of a run that refines the move network."""

from __future__ import annotations

import dataclasses

from gdp_grappler import errors
from gdp_grappler.placers.policy import policy_config


@dataclasses.dataclass(frozen=True)
class MoveConfig:
  """Numbers of `move_trainer.MoveTrainer` and of the run around it.

  Attributes:
    iterations: Rounds of episodes and updates of each graph.
    rollouts: N, moves per iteration that are drawn from the policy and priced.
    episode_prices: Placements that an episode prices at most, among them its
      start and moves that are tried together.
    at_once: Moves that are priced before the policy looks at a placement anew.
    draws: K, moves that the policy looks at each time.
    temperature: The scores of moves are divided by it before the softmax.
    gain_weight: As of `move_filter.FilterConfig`.
    from_best: Share of the episodes that start with one of the best placements
      found so far; the others start with a draft.
    elites: How many of the best placements are remembered.
    drafts: What the drafts are, and how many.
    skill_drafts: Drafts from which the skill of the network is told, before and
      after learning; 0 to tell none, and to keep the network in any case.
    epochs: Gradient steps of PPO on the moves of an iteration.
    learning_rate: Of Adam, for PPO.
    clip_ratio: Epsilon of PPO's clipped objective.
    entropy_bonus: Weight of the entropy of a choice in the loss.
    gradient_clip: Largest global norm of a gradient.
    critic_rate: Of Adam, for the predictions of gains.
    critic_epochs: Gradient steps for these on the moves of an iteration.
    search_trials: Placements that the search after learning prices, where no
      clock ends it; 0 for no search.
    checkpoint_iterations: Iterations between two checkpoints.
    checkpoint_s: Seconds between two checkpoints, whichever comes first.
  """

  iterations: int = 40
  rollouts: int = 128
  episode_prices: int = 32
  at_once: int = 4
  draws: int = 96
  temperature: float = .5
  gain_weight: float = .5
  from_best: float = .5
  elites: int = 8
  drafts: policy_config.PolicyConfig = policy_config.PolicyConfig()
  skill_drafts: int = 6
  epochs: int = 4
  learning_rate: float = 5e-4
  clip_ratio: float = .2
  entropy_bonus: float = 1e-3
  gradient_clip: float = 1.
  critic_rate: float = 2e-4
  critic_epochs: int = 2
  search_trials: int = 2048
  checkpoint_iterations: int = 40
  checkpoint_s: float = 30.

  def __post_init__(self) -> None:
    for name in ('iterations', 'entropy_bonus', 'gain_weight', 'critic_epochs',
                 'search_trials', 'skill_drafts'):
      self._check(name, getattr(self, name) >= 0, 'zero or more')
    for name in ('rollouts', 'at_once', 'draws', 'temperature', 'elites',
                 'epochs', 'learning_rate', 'clip_ratio', 'gradient_clip',
                 'critic_rate', 'checkpoint_iterations', 'checkpoint_s'):
      self._check(name, getattr(self, name) > 0, 'more than zero')
    self._check('episode_prices', self.episode_prices > 1, 'more than one')
    self._check('from_best', 0 <= self.from_best <= 1, 'a share')

  @property
  def episode(self) -> policy_config.PolicyConfig:
    """How an episode draws and prices."""
    return policy_config.PolicyConfig(prices=self.episode_prices,
                                      at_once=self.at_once, draws=self.draws,
                                      gain_weight=self.gain_weight)

  def _check(self, field: str, ok: bool, wanted: str) -> None:
    if not ok:
      raise errors.GdpError(f'{field} is {getattr(self, field)!r}; it must be '
                            f'{wanted}.')


def for_measuring(config: MoveConfig) -> MoveConfig:
  """The config for prices that take a second instead of a millisecond.

  Fewer drafts and moves, and no search but that of the simulated problem.

  Args:
    config: For prices that are simulated.
  """
  drafts = dataclasses.replace(config.drafts, maps=2, schedules=2, cuts=0)
  return dataclasses.replace(config, iterations=min(config.iterations, 20),
                             rollouts=min(config.rollouts, 8), drafts=drafts,
                             episode_prices=min(config.episode_prices, 8),
                             search_trials=0, skill_drafts=0)
