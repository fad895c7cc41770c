"""Sizes and switches of HDP and ColocRL."""

from __future__ import annotations

import dataclasses
from typing import Any

from gdp_grappler import errors
from gdp_grappler import suggestions


@dataclasses.dataclass(frozen=True)
class HdpConfig:
  """Settings of a search, without the seed.

  Names in brackets are those of the implementation `hierarchical_controller`
  that was published with TensorFlow 1. *Published* values are its values.

  Attributes:
    steps: Number of updates of the policy, if no time budget is given.
    placer_samples: Placements sampled per step, all for one sample of the
      Grouper.
    max_groups: Largest number of groups.
    groups_per_device: Number of groups per device, as long as `max_groups` is
      not exceeded.
    coloc_groups: Largest number of ColocRL's hand-made groups.
    grouper_units: Hidden width of the Grouper [grouping_hidden_size].
    initial_group_scale: Factor on the initial weights of the Grouper's last
      layer. Published: 1.
    first_group_logit: Number added to the logit of a unit's first group. The
      first groups join units along their largest tensors, so the Grouper begins
      with these groups and learns to leave them. If units are scattered over
      the groups instead, much data is sent wherever the groups are placed.
      Published: 0, a scatter.
    max_outputs: Number of outputs of an op that its embedding distinguishes
      [max_num_outputs].
    adjacency_size: Number of neighbours in an op's embedding [adj_embed_dim].
    place_scale: Largest position in topological order, of an op itself and of
      its neighbours. Published: the number of ops, from which a network of this
      size does not learn.
    hidden_units: Width of the Placer's LSTMs and device embeddings
      [hidden_size]; even, because the encoder has two directions.
    attention_units: Width of the vectors in which attention compares query and
      memory.
    aligned_decoder: Whether the decoder also gets the encoder's state of the
      group that it decides next. Published: False; the decoder has to count
      groups.
    tanh_constant: C of equation 1; logits stay within -C and C.
    temperature: T of equation 1.
    logits_noise: Standard deviation of the noise added to logits when sampling,
      as a share of their root mean square [logits_std_noise].
    stop_noise_step: Number of steps with that noise.
    learning_rate: Initial learning rate of Adam [lr].
    learning_rate_decay: Factor by which the learning rate falls [lr_dec].
    decay_steps: Number of steps between two such decreases.
    start_decay_step: Number of steps before the learning rate begins to fall.
    max_gradient_norm: Largest global norm of a gradient [grad_bound].
    baseline_decay: Decay of the moving average of rewards [bl_dec].
    baseline_from_failing: Whether the baseline starts with the reward of the
      failing signal [start_with_failing_signal]; otherwise it starts with the
      mean reward of the first step.
    failing_signal: Run time that a failing placement is charged, in the unit of
      the reward.
    relative_reward: Whether the unit of run times is the seconds of all ops,
      each on its fastest device. Published: False; the unit is 1 s.
    normalize_advantage: Whether advantages are divided by their root mean
      square, a moving average like the baseline. Published: False.
    entropy_weight: Reward of a nat of entropy per decision. Published: 0.
  """

  steps: int = 1000
  placer_samples: int = 4
  max_groups: int = 256
  groups_per_device: int = 20
  coloc_groups: int = 256
  grouper_units: int = 64
  initial_group_scale: float = 1.
  first_group_logit: float = 0.
  max_outputs: int = 5
  adjacency_size: int = 20
  place_scale: float = 1.
  hidden_units: int = 512
  attention_units: int = 512
  aligned_decoder: bool = False
  tanh_constant: float = 1.
  temperature: float = 1.
  logits_noise: float = 0.5
  stop_noise_step: int = 750
  learning_rate: float = 0.1
  learning_rate_decay: float = 0.95
  decay_steps: int = 50
  start_decay_step: int = 400
  max_gradient_norm: float = 1.
  baseline_decay: float = 0.9
  baseline_from_failing: bool = True
  failing_signal: float = 100.
  relative_reward: bool = False
  normalize_advantage: bool = False
  entropy_weight: float = 0.

  def __post_init__(self) -> None:
    for field in dataclasses.fields(self):
      self._check(field, getattr(self, field.name))
    if self.hidden_units % 2:
      raise errors.GdpError(
          f'HDP: hidden_units = {self.hidden_units} is odd; the encoder has '
          'two directions of half that width. Give an even number.')

  def replace(self, **changes: Any) -> HdpConfig:
    """Returns a copy with other values.

    Raises:
      GdpError: a value is wrong.
    """
    return dataclasses.replace(self, **changes)

  def num_groups(self, num_devices: int) -> int:
    """Returns the number of groups that the Grouper distinguishes."""
    return min(self.max_groups, self.groups_per_device * num_devices)

  def learning_rate_at(self, step: int) -> float:
    """Returns the learning rate of a step, counted from 0."""
    decays = max(0, step - self.start_decay_step) // self.decay_steps
    return self.learning_rate * self.learning_rate_decay**decays

  def noise_at(self, step: int) -> float:
    """Returns the noise on the logits in a step, counted from 0."""
    return self.logits_noise if step < self.stop_noise_step else 0.

  def _check(self, field: dataclasses.Field[Any], value: float) -> None:
    kind = type(field.default)
    ok = type(value) is kind or (kind is float and type(value) is int)
    low = 0 if kind is not int or field.name in _MAY_BE_ZERO else 1
    positive = field.name in _POSITIVE
    if not ok or not low <= value < float('inf') or (positive and not value):
      raise errors.GdpError(
          f'HDP: {field.name} = {value!r} is not usable; give '
          + (f'an integer of at least {low}.' if kind is
             int else 'true or false.' if kind is
             bool else f'a number {"above" if positive else "from"} 0.'))


_MAY_BE_ZERO = ('stop_noise_step', 'start_decay_step', 'adjacency_size')
_POSITIVE = ('tanh_constant', 'temperature', 'learning_rate',
             'max_gradient_norm', 'failing_signal')


def preset(name: str) -> HdpConfig:
  """Returns one of `PRESETS`.

  Raises:
    GdpError: there is no preset of this name.
  """
  if name not in PRESETS:
    raise errors.GdpError(
        suggestions.unknown('HDP preset', name, sorted(PRESETS)))
  return PRESETS[name]


# `published` has the values of the implementation for TensorFlow 1. `tuned` is
# the same for all graphs. It was chosen by simulated trials on Transformer-XL
# and RNNLM; on ResNet-50 it finds slower placements than its predecessor. Its
# groups are connected from the beginning. Its failing signal is of the order of
# the slowest run times, because a larger one hides all other differences. Its C
# and T let the policy become certain, but slowly: tanh must still have a slope
# when the policy has learned to avoid the CPU.
PRESETS = {
    'published':
        HdpConfig(),
    'tuned':
        HdpConfig(steps=1500, first_group_logit=12., initial_group_scale=0.1,
                  failing_signal=10., tanh_constant=5., temperature=5.,
                  hidden_units=128, attention_units=32, aligned_decoder=True,
                  coloc_groups=64, logits_noise=0., learning_rate=0.001,
                  start_decay_step=1500, baseline_from_failing=False,
                  relative_reward=True, normalize_advantage=True),
}
