"""Sizes and switches of HDP and ColocRL."""

from __future__ import annotations

import dataclasses
from typing import Any

from gdp_grappler import errors
from gdp_grappler import suggestions


@dataclasses.dataclass(frozen=True)
class HdpConfig:
  """Everything but the seed that decides a search.

  Names in brackets are those of the version that was published with
  TensorFlow 1 as `hierarchical_controller`.

  Attributes:
    steps: Updates of the policy, where no time budget is given.
    placer_samples: Placements per step; the Grouper gives one sample.
    max_groups: Upper bound of the number of groups.
    groups_per_device: Groups, below that bound, per device.
    coloc_groups: Upper bound of ColocRL's hand-made groups.
    grouper_units: Hidden width of the Grouper [grouping_hidden_size].
    initial_group_scale: Factor on the Grouper's last weights. Published: 1.
    first_group_logit: Added to a unit's logit for the group that it is in if
      units are joined along their largest tensors. The Grouper begins with
      those groups and learns to leave them: a scatter of units over groups
      sends much wherever the groups go. Published: 0, a scatter.
    max_outputs: Outputs of an op that its embedding tells apart
      [max_num_outputs].
    adjacency_size: Neighbours in an op's embedding [adj_embed_dim].
    place_scale: Places in topological order, an op's own and its neighbours',
      run from 0 to this. Published: to the number of ops, which no net of this
      size learns from.
    hidden_units: Width of the Placer's LSTMs and device embeddings
      [hidden_size]; even, because the encoder has two directions.
    attention_units: Width in which query and memory are compared.
    aligned_decoder: The decoder is also fed the encoder's state of the group
      that it decides next. Published: False, it has to count.
    tanh_constant: C of equation 1; logits stay within -C and C.
    temperature: T of equation 1.
    logits_noise: Standard deviation of what is added to logits when sampling,
      as a share of their root mean square [logits_std_noise].
    stop_noise_step: Steps with that noise.
    learning_rate: Of Adam [lr].
    learning_rate_decay: Factor [lr_dec] on it ...
    decay_steps: ... each so many steps ...
    start_decay_step: ... after these.
    max_gradient_norm: Gradients are scaled down to it [grad_bound].
    baseline_decay: Of the moving average of rewards [bl_dec].
    baseline_from_failing: The baseline begins at the failing signal
      [start_with_failing_signal], else at the first step's mean reward.
    failing_signal: Run time that a failing placement is charged, in the unit
      of the reward.
    relative_reward: Run times are divided by the seconds of all ops, each on
      its fastest device; published: by 1 s.
    normalize_advantage: Advantages are divided by their root mean square, a
      moving average like the baseline. Published: False.
    entropy_weight: Nats per decision are rewarded with it. Published: 0.
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
    """A copy with other values.

    Raises:
      GdpError: a wrong value.
    """
    return dataclasses.replace(self, **changes)

  def num_groups(self, num_devices: int) -> int:
    """How many groups the Grouper tells apart."""
    return min(self.max_groups, self.groups_per_device * num_devices)

  def learning_rate_at(self, step: int) -> float:
    """Learning rate of a step, counted from 0."""
    decays = max(0, step - self.start_decay_step) // self.decay_steps
    return self.learning_rate * self.learning_rate_decay**decays

  def noise_at(self, step: int) -> float:
    """Noise on the logits in a step, counted from 0."""
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
  """One of `PRESETS`.

  Raises:
    GdpError: no such preset.
  """
  if name not in PRESETS:
    raise errors.GdpError(
        suggestions.unknown('HDP preset', name, sorted(PRESETS)))
  return PRESETS[name]


# `published` has the figures of the version of TensorFlow 1. `tuned` was chosen
# by trials on Transformer-XL and RNNLM priced by the simulator, and is the same
# for all graphs; on ResNet-50 it finds less than its predecessor. In it,
# groups hold together from the beginning; the failing signal is of the order of
# the slowest run times, since a larger one drowns all else; and C and T let the
# policy become certain, but slowly: tanh should not have lost its slope by the
# time that the policy has learned to avoid the CPU.
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
