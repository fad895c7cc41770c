"""Sizes and switches of the policy network."""

from __future__ import annotations

import dataclasses
from typing import Any, Mapping

from gdp_grappler import errors
from gdp_grappler import suggestions


class ConfigError(errors.GdpError):
  """A network configuration has an unknown field or a wrong value."""


@dataclasses.dataclass(frozen=True)
class PlacerConfig:
  """All settings that determine the network's shape and its initial weights.

  Names in brackets are those of GDP's Table 3 (ICLR 2020 submission). A *unit*
  is a set of ops for which the policy chooses one device.

  Attributes:
    type_buckets: Hash buckets for op types. Two types may share a bucket.
    type_units: Width of the embedding of an op type.
    hidden_units: Width of the units' states in the graph embedding network and
      in the placement network [trf d model].
    graph_layers: Number of GraphSAGE layers [gs layers].
    transformer_layers: Number of Transformer-XL layers [trf layers], without
      the one for feature conditioning.
    heads: Number of attention heads [trf n head].
    head_units: Width of each attention head [trf d heads].
    feed_forward_units: Inner width of the position-wise network [trf d inner].
    segment_length: Number of units in a segment. A unit attends to its own
      segment and to the previous one.
    device_units: Width of the vectors of units and devices whose dot product is
      the logit.
    device_slots: Largest number of devices of one type.
    attention: False gives the ablation without attention, in which the
      placement network processes each unit by itself.
    superposition: False gives the ablation without feature conditioning
      (equation 5).
    positions: Number of sines, and of cosines, that encode the position of a
      unit in topological order. 0 means none. Without an encoding, units of
      equal branches have equal features and neighbours, so the network cannot
      send the branches to different devices.
    places: Number of sines, and of cosines, that encode the coordinates of a
      unit in a repeated structure (`schema.PLACE_FEATURES`) and the position of
      a device among the devices of its type. 0 means none. This is not in the
      paper. With these encodings, a dot product can distribute layers or time
      steps evenly over devices.
    graph_residual: Whether the output of GraphSAGE is added to its input. Max
      pooling of sigmoids makes the states of neighbours alike.
    centred_head: Whether the last norm is taken over all units instead of over
      the state of each unit. What all units have in common then changes no
      logit, and a gradient step for one unit does not move the others.
    speed_prior: Whether an untrained network draws devices in proportion to
      their peak FLOP/s instead of uniformly. A few units on a CPU make a step
      so slow that its time says nothing about the other units.
    initial_logit_scale: Approximate standard deviation of an untrained
      network's logits. A small value lets training begin near the uniform
      distribution over the allowed devices, or near that of `speed_prior`.
    initial_condition_scale: Approximate standard deviation of the difference
      between 1 and an untrained network's conditions.
    seed: Seed of the initial weights.
  """

  type_buckets: int = 512
  type_units: int = 16
  hidden_units: int = 64
  graph_layers: int = 3
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

  @classmethod
  def of_fields(cls, fields: Mapping[str, Any]) -> PlacerConfig:
    """Returns the configuration in a file, also in that of an earlier version.

    Args:
      fields: Values of fields by name.

    Raises:
      ConfigError: a field is unknown, or a value is wrong.
    """
    fields = known_fields(fields)
    known = {field.name for field in dataclasses.fields(cls)}
    for name in sorted({*fields} - known):
      raise ConfigError(f'this version has no field {name} = {fields[name]!r}')
    return cls(**fields)

  def replace(self, **changes: Any) -> PlacerConfig:
    """Returns a copy with other values.

    Raises:
      ConfigError: a value is wrong.
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


_MAY_BE_ZERO = ('graph_layers', 'transformer_layers', 'positions', 'places',
                'seed')
_WANTED = {int: 'an integer', float: 'a number from 0', bool: 'true or false'}

# Fields of earlier versions, and the values with which those versions built the
# network that this version always builds.
_FORMER = {'max_neighbors': 0}


def known_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the fields without those that changed nothing.

  A field of earlier versions is removed if its value is that in `_FORMER`. With
  another value it remains, because this version cannot build that network.

  Args:
    fields: Values of fields by name, as an earlier version may have written
      them.
  """
  return {
      name: value for name, value in dict(fields).items()
      if name not in _FORMER or value != _FORMER[name]
  }


def preset(name: str) -> PlacerConfig:
  """Returns one of `PRESETS`.

  Raises:
    ConfigError: there is no preset of this name.
  """
  if name not in PRESETS:
    raise ConfigError(
        suggestions.unknown('network preset', name, sorted(PRESETS)))
  return PRESETS[name]


# The rows of GDP's Table 3 survive in the text of the submission, but its
# figures do not. So the sizes are ours, chosen such that the network trains in
# minutes on two CPU cores.
_PAPER = PlacerConfig(positions=16, graph_residual=True, centred_head=True,
                      speed_prior=True)
# The ablations of the paper's figure 3, and one without GraphSAGE: the field
# that each one changes, and its value.
ABLATIONS: dict[str, tuple[str, Any]] = {
    'paper_no_attention': ('attention', False),
    'paper_no_superposition': ('superposition', False),
    'paper_no_graphsage': ('graph_layers', 0),
}
# The network that `gdp_pretrain --network=placer` trains.
TRANSFER = _PAPER.replace(hidden_units=96, feed_forward_units=192, places=6)
PRESETS = {
    'default': PlacerConfig(), 'gdp_one': _PAPER, 'paper': _PAPER,
    'transfer': TRANSFER
}
PRESETS |= {
    name: _PAPER.replace(**{field: value})
    for name, (field, value) in ABLATIONS.items()
}
