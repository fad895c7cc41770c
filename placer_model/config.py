"""Sizes and switches of the placer network."""

from __future__ import annotations

import dataclasses
from typing import Any

from gdp_grappler import errors
from gdp_grappler import suggestions


class ConfigError(errors.GdpError):
  """A network configuration has an unknown field or a wrong value."""


@dataclasses.dataclass(frozen=True)
class PlacerConfig:
  """Everything that decides the network's shape and its first weights.

  Names in brackets are those of GDP's Table 3 (ICLR 2020 submission).

  Attributes:
    type_buckets: Hash buckets for op types; two types may share one.
    type_units: Width of an op type's embedding.
    hidden_units: Width of unit states in both networks [trf d model].
    graph_layers: GraphSAGE layers [gs layers].
    max_neighbors: Neighbours that a unit aggregates, separately for producers
      and consumers; the ones with the heaviest edges are kept [gs knn].
      0 means all.
    transformer_layers: Transformer-XL layers [trf layers]; the feature
      conditioning layer comes on top.
    heads: Attention heads [trf n head].
    head_units: Width of each attention head [trf d heads].
    feed_forward_units: Inner width of the position-wise network
      [trf d inner].
    segment_length: Units in a segment; each attends to its own and the
      previous segment.
    device_units: Width of the product between units and devices.
    device_slots: Largest number of devices of one type.
    attention: False gives the ablation without attention: the placement
      network decides for each unit by itself.
    superposition: False gives the ablation without feature conditioning
      (equation 5).
    positions: Sines, and cosines, of a unit's place in topological order that
      it is given; 0 means none. Units of equal branches are the same to a
      network that sees their features and neighbours alone: it cannot send
      one here and the other there.
    places: Sines, and cosines, of where a unit is in a structure that repeats
      itself (`schema.PLACE_FEATURES`), and of where a device is among those of
      its type; 0 means none. Not in the paper: with them, to share layers or
      time steps out evenly is a product of a unit's and a device's.
    graph_residual: What GraphSAGE gives is added to what units were before it.
      Max pooling of sigmoids makes neighbours alike.
    centred_head: The last norm is taken over all units, not over each one's
      state. What units have in common then moves no logit, and a gradient
      step for one of them does not drag the others along.
    speed_prior: An untrained network draws a device as often as its peak is
      high, not all equally often: a placement with but a few units on a CPU is
      so slow that it tells nothing of the others.
    initial_logit_scale: Standard deviation, roughly, of an untrained
      network's logits; small, so that training begins near the uniform
      distribution over the allowed devices, or that of `speed_prior`.
    initial_condition_scale: Standard deviation, roughly, by which an untrained
      network's conditions differ from 1.
    seed: Decides the first weights.
  """

  type_buckets: int = 512
  type_units: int = 16
  hidden_units: int = 64
  graph_layers: int = 3
  max_neighbors: int = 0
  transformer_layers: int = 2
  heads: int = 4
  head_units: int = 16
  feed_forward_units: int = 128
  segment_length: int = 128
  device_units: int = 32
  device_slots: int = 64
  attention: bool = True
  superposition: bool = True
  positions: int = 0
  places: int = 0
  graph_residual: bool = False
  centred_head: bool = False
  speed_prior: bool = False
  initial_logit_scale: float = 0.01
  initial_condition_scale: float = 0.3
  seed: int = 0

  def __post_init__(self) -> None:
    for field in dataclasses.fields(self):
      self._check(field, getattr(self, field.name))

  def replace(self, **changes: Any) -> PlacerConfig:
    """A copy with other values.

    Raises:
      ConfigError: a wrong value.
    """
    return dataclasses.replace(self, **changes)

  def _check(self, field: dataclasses.Field[Any], value: float) -> None:
    kind = type(field.default)
    ok = type(value) is kind or (kind is float and type(value) is int)
    low = 0 if field.name in _MAY_BE_ZERO or kind is not int else 1
    if not ok or not low <= value < float('inf'):
      raise ConfigError(
          f'Network configuration: {field.name} = {value!r} is not usable; '
          f'give {_WANTED[kind]}{" of at least 1" if low else ""}.')


_MAY_BE_ZERO = ('max_neighbors', 'graph_layers', 'transformer_layers',
                'positions', 'places', 'seed')
_WANTED = {int: 'an integer', float: 'a number from 0', bool: 'true or false'}


def preset(name: str) -> PlacerConfig:
  """One of `PRESETS`.

  Raises:
    ConfigError: no such preset.
  """
  if name not in PRESETS:
    raise ConfigError(
        suggestions.unknown('network preset', name, sorted(PRESETS)))
  return PRESETS[name]


# Both train in minutes on two CPU cores. The fields are those of GDP's Table 3;
# the surviving text of the submission gives that table's rows but not its
# figures, so the sizes are ours. The others are the ablations of its figure 3,
# and one without GraphSAGE.
_PAPER = PlacerConfig(positions=16, graph_residual=True, centred_head=True,
                      speed_prior=True)
ABLATIONS = {
    'paper_no_attention': _PAPER.replace(attention=False),
    'paper_no_superposition': _PAPER.replace(superposition=False),
    'paper_no_graphsage': _PAPER.replace(graph_layers=0),
}
# What `gdp_pretrain --network=placer` teaches.
TRANSFER = _PAPER.replace(hidden_units=96, feed_forward_units=192, places=6)
PRESETS = {
    'default': PlacerConfig(), 'gdp_one': _PAPER, 'paper': _PAPER,
    'transfer': TRANSFER, **ABLATIONS
}
