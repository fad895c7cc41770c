"""What a training run can be told."""

from __future__ import annotations

import dataclasses

from gdp_grappler import errors
from gdp_grappler import suggestions
from gdp_grappler.graph import coarsening
from placer_model import config as config_lib


@dataclasses.dataclass(frozen=True)
class TrainConfig:
  """Every knob of `trainer.Trainer`.

  The fields up to `gradient_clip` are PPO's. The rest are levers beyond the
  paper; each can be switched off. The preset 'gdp_one' does without search and
  imitation, but not without credit per decision, levels and annealing.

  Attributes:
    iterations: Rollouts-then-update rounds of a run.
    rollouts: K, placements sampled from the policy per iteration.
    epochs: Gradient steps on the K rollouts of an iteration.
    learning_rate: Of Adam, for PPO.
    clip_ratio: Epsilon of PPO's clipped objective, per decision.
    entropy_bonus: Weight of the entropy of a decision in the loss.
    gradient_clip: Largest global norm of a gradient.
    credit: Whose advantage a decision has. 'rollout': its rollout's. 'unit':
      its own, from a regression of the rewards on the K rollouts' decisions.
    ridge: Of that regression, see `credit.advantages`.
    window: Iterations whose rollouts the regression looks at; the latest.
    exchange: Whether the regression takes each rollout for that of its images,
      with equal devices exchanged, which is the most like the policy.
    temperature: Of the policy that the regression's advantages, in units of
      what chance alone would give, would lead to: what a nat of entropy is
      worth among them.
    last_temperature: Share of the temperature that is left at the end, where
      things anneal; it falls by the same factor in equal times.
    greedy: Whether one of the K rollouts is the likeliest placement.
    exploration: 'correlated': neighbouring units tend to move together, each
      one's marginal stays the policy's. 'levels': the same, with clusters that
      become smaller as the policy becomes certain.
    levels: Clusters that each level aims at, from few to many; the last ones
      are the units that the policy decides about.
    chance: Share of the chance (nats) in a rollout of the first iteration up to
      which later ones are drawn from finer levels.
    anneal: Whether, in the course of a run's iterations or of its time, PPO's
      learning rate and the temperature fall, and levels become finer as the
      policy becomes certain; else there is only the last level.
    last_rate: Share of the learning rate that is left at the end.
    warm_search_trials: Placements priced by local search around the best
      baseline before the first rollout; 0 is off.
    warm_start_steps: Gradient steps of cross-entropy towards the best
      placement before the first rollout; 0 is off.
    confidence: Probability that imitation gives to the placement's device;
      the rest is spread over the other allowed ones.
    search_trials: Placements priced per iteration by local search around the
      best one so far; 0 is off.
    self_imitation_steps: Gradient steps of cross-entropy towards the best
      placement so far, after PPO's in every iteration; 0 is off.
    distill_steps: At most so many gradient steps of cross-entropy towards the
      best placement at the end, so that the exported policy's greedy
      placement is that one; 0 is off.
    imitation_learning_rate: Of Adam, for all cross-entropy steps.
    checkpoint_iterations: Iterations between two checkpoints.
    checkpoint_s: Seconds between two checkpoints, whichever comes first.
  """

  iterations: int = 80
  rollouts: int = 32
  epochs: int = 4
  learning_rate: float = 2e-4
  clip_ratio: float = 0.2
  entropy_bonus: float = 3e-3
  gradient_clip: float = 1.0
  credit: str = 'rollout'
  ridge: float = 0.3
  window: int = 1
  exchange: bool = False
  temperature: float = 0.0
  last_temperature: float = 1.0
  greedy: bool = False
  exploration: str = 'correlated'
  levels: tuple[int, ...] = coarsening.NESTED_AIMS
  chance: float = 0.75
  anneal: bool = False
  last_rate: float = 0.1
  warm_search_trials: int = 20480
  warm_start_steps: int = 240
  confidence: float = 0.97
  search_trials: int = 256
  self_imitation_steps: int = 1
  distill_steps: int = 400
  imitation_learning_rate: float = 3e-3
  checkpoint_iterations: int = 40
  checkpoint_s: float = 30.0

  def __post_init__(self) -> None:
    for field in ('iterations', 'warm_search_trials', 'warm_start_steps',
                  'search_trials', 'self_imitation_steps', 'distill_steps',
                  'entropy_bonus', 'temperature'):
      self._check(field, getattr(self, field) >= 0, 'zero or more')
    for field in ('rollouts', 'epochs', 'learning_rate', 'clip_ratio',
                  'gradient_clip', 'imitation_learning_rate', 'ridge', 'window',
                  'chance', 'last_rate', 'last_temperature',
                  'checkpoint_iterations', 'checkpoint_s'):
      self._check(field, getattr(self, field) > 0, 'more than zero')
    self._check('levels', self.levels and min(self.levels) > 0,
                'numbers of clusters, each more than zero')
    self._check('credit', self.credit in ('rollout', 'unit'),
                "'rollout' or 'unit'")
    self._check('exploration', self.exploration in ('correlated', 'levels'),
                "'correlated' or 'levels'")
    self._check('confidence', 0 < self.confidence < 1, 'between 0 and 1')

  @property
  def units(self) -> str:
    """What the policy decides about, see `coarsening.units`."""
    return (coarsening.NESTED
            if self.exploration == 'levels' else coarsening.COARSE)

  def _check(self, field: str, ok: object, wanted: str) -> None:
    if not ok:
      raise errors.GdpError(f'{field} is {getattr(self, field)!r}; it must be '
                            f'{wanted}.')


# GDP-one, with credit per decision, levels of clusters and annealing of ours,
# but without search and imitation; 'paper' is a former name. The table of
# PPO figures is not in the text that survives, so these are ours, chosen on
# RNNLM-2 and AmoebaNet; 6,000 trials are what HDP's take. A temperature of 1
# leaves no time to become certain in, without one a policy is certain before
# the trials have told the good from the lucky.
_PAPER = TrainConfig(iterations=125, rollouts=48, epochs=4, learning_rate=2e-3,
                     last_rate=.3, entropy_bonus=0., credit='unit', window=4,
                     exchange=True, temperature=.4, last_temperature=.1,
                     greedy=True, exploration='levels', anneal=True,
                     warm_search_trials=0, warm_start_steps=0, search_trials=0,
                     self_imitation_steps=0, distill_steps=0)
_PRESETS = {
    'default': TrainConfig(), 'gdp_one': _PAPER, 'paper': _PAPER,
    **dict.fromkeys(config_lib.ABLATIONS, _PAPER)
}
NAMES = tuple(_PRESETS)


def preset(name: str) -> TrainConfig:
  """One of `NAMES`.

  Raises:
    GdpError: no such preset.
  """
  if name not in _PRESETS:
    raise errors.GdpError(suggestions.unknown('config', name, NAMES))
  return _PRESETS[name]


def for_measuring(config: TrainConfig) -> TrainConfig:
  """The config for prices that take a second instead of a millisecond.

  A fraction of the placements, spent on the policy and around the best one.
  """
  return dataclasses.replace(config, iterations=min(config.iterations, 20),
                             rollouts=min(config.rollouts,
                                          4), warm_search_trials=0,
                             search_trials=min(config.search_trials, 8))
