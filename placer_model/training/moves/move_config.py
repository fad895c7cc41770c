"""Settings of a run that trains the move network further."""

from __future__ import annotations

import dataclasses

from gdp_grappler import errors
from gdp_grappler.placers.policy import policy_config


@dataclasses.dataclass(frozen=True)
class MoveConfig:
  """Settings of `move_trainer.MoveTrainer` and of its run.

  Attributes:
    iterations: Iterations of each graph; each has episodes and an update.
    rollouts: N, moves per iteration that are drawn from the policy and priced.
    episode_prices: Largest number of placements that an episode prices,
      including its start and combinations of moves.
    at_once: Moves that are priced per look.
    draws: K, moves that are drawn per look.
    temperature: Divisor of the moves' scores before the softmax.
    gain_weight: Weight of the predicted gain in a score, see
      `move_scoring.GAIN_WEIGHT`.
    from_best: Share of the episodes that start with one of the best placements
      so far. The others start with a draft.
    elites: Number of best placements that are kept.
    drafts: Settings of the drafts, which are the first placements.
    skill_drafts: Number of drafts on which the network is tested before and
      after training. 0 means no test; the trained network is then always kept.
    epochs: Gradient steps of PPO on the moves of an iteration.
    learning_rate: Learning rate of Adam, for PPO.
    clip_ratio: Epsilon of PPO's clipped objective.
    entropy_bonus: Weight of the entropy of a choice in the loss.
    gradient_clip: Largest global norm of a gradient.
    critic_rate: Learning rate of Adam, for the predictions of gains.
    critic_epochs: Gradient steps for these predictions on the moves of an
      iteration.
    search_trials: Largest number of placements that the search after training
      prices if no time limit is given; 0 for no search.
    checkpoint_iterations: Iterations after which the next checkpoint is
      written.
    checkpoint_s: Seconds after which the next checkpoint is written, if that is
      earlier.
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
    """Settings of one episode."""
    return policy_config.PolicyConfig(prices=self.episode_prices,
                                      at_once=self.at_once, draws=self.draws,
                                      gain_weight=self.gain_weight)

  def _check(self, field: str, ok: bool, wanted: str) -> None:
    if not ok:
      raise errors.GdpError(f'{field} is {getattr(self, field)!r}; it must be '
                            f'{wanted}.')


def for_measuring(config: MoveConfig) -> MoveConfig:
  """Returns the config for prices that take a second, not a millisecond.

  It has fewer drafts and moves, and no search after training.

  Args:
    config: Config for simulated prices.
  """
  drafts = dataclasses.replace(config.drafts, maps=2, schedules=2, cuts=0)
  return dataclasses.replace(config, iterations=min(config.iterations, 20),
                             rollouts=min(config.rollouts, 8), drafts=drafts,
                             episode_prices=min(config.episode_prices, 8),
                             search_trials=0, skill_drafts=0)
