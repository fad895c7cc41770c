"""Sizes and switches of HDP and ColocRL."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class HdpConfig:
  """Settings of a search, without the seed.

  Names in brackets are those of the implementation `hierarchical_controller`
  that was published with TensorFlow 1. *Published* values are its values, where
  others are used here. The values are the same for all graphs. They were chosen
  by simulated trials on Transformer-XL and RNNLM; on ResNet-50 they find slower
  placements than the values that were used before. The published implementation
  also adds noise to the logits of the first samples, and begins with a baseline
  of -sqrt(100).

  Attributes:
    steps: Number of updates of the policy, if no time budget is given.
      Published: 1,000.
    placer_samples: Placements sampled per step, all for one sample of the
      Grouper.
    max_groups: Largest number of groups.
    groups_per_device: Number of groups per device, as long as `max_groups` is
      not exceeded.
    coloc_groups: Largest number of ColocRL's hand-made groups. Published: 256.
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
      [hidden_size]; even, because the encoder has two directions. Published:
      512.
    attention_units: Width of the vectors in which attention compares query and
      memory. Published: 512.
    tanh_constant: C of equation 1; logits stay within -C and C. C and T let the
      policy become certain, but slowly: tanh must still have a slope when the
      policy has learned to avoid the CPU. Published: 1, like T.
    temperature: T of equation 1.
    learning_rate: Initial learning rate of Adam [lr]. Published: 0.1.
    learning_rate_decay: Factor by which the learning rate falls [lr_dec].
    decay_steps: Number of steps between two such decreases.
    start_decay_step: Number of steps before the learning rate begins to fall.
      Published: 400.
    max_gradient_norm: Largest global norm of a gradient [grad_bound].
    baseline_decay: Decay of the moving average of rewards [bl_dec].
    failing_signal: Run time that a failing placement is charged. The unit is
      the seconds of all ops, each on its fastest device (published: 1 s). It is
      of the order of the slowest run times, because a larger one hides all
      other differences. Published: 100.
  """

  steps: int = 1500
  placer_samples: int = 4
  max_groups: int = 256
  groups_per_device: int = 20
  coloc_groups: int = 64
  grouper_units: int = 64
  initial_group_scale: float = .1
  first_group_logit: float = 12.
  max_outputs: int = 5
  adjacency_size: int = 20
  place_scale: float = 1.
  hidden_units: int = 128
  attention_units: int = 32
  tanh_constant: float = 5.
  temperature: float = 5.
  learning_rate: float = 0.001
  learning_rate_decay: float = 0.95
  decay_steps: int = 50
  start_decay_step: int = 1500
  max_gradient_norm: float = 1.
  baseline_decay: float = 0.9
  failing_signal: float = 10.

  def num_groups(self, num_devices: int) -> int:
    """Returns the number of groups that the Grouper distinguishes."""
    return min(self.max_groups, self.groups_per_device * num_devices)

  def learning_rate_at(self, step: int) -> float:
    """Returns the learning rate of a step, counted from 0."""
    decays = max(0, step - self.start_decay_step) // self.decay_steps
    return self.learning_rate * self.learning_rate_decay**decays
