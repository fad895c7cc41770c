"""Names of the features, and their fingerprint.

A policy carries the fingerprint of the schema it was trained with; a changed
list here makes old policies refuse to load instead of misreading columns.
"""

from __future__ import annotations

import dataclasses
import hashlib

import numpy as np

# Where a unit is in a structure that repeats itself: the share of the work that
# comes before the middle of what is at the same place, 0 to 1; -1 where it is
# nowhere. Devices that share the work out evenly in blocks have equal stretches
# of it.
PLACE_FEATURES = (
    'layer_place',  # by a coordinate of `structure.coordinates`
    'segment_place',  # likewise
    'branch_place',  # likewise
    'variable_place',  # likewise
    'repetition_place',  # likewise
    'order_place',  # in topological order
    'depth_place',  # by the shorter of the longest paths to an end
)

# Columns of `GraphFeatures.units`. HDP's operation embedding (Mirhoseini et
# al. 2018, section 3: type, output sizes, adjacency) plus what the simulator
# knows.
UNIT_FEATURES = (
    'flops',  # arithmetic operations
    'io_bytes',  # read and written
    'output_bytes',  # sent to consumers
    'param_bytes',  # variables
    'num_ops',  # ops in the unit
    'num_inputs',  # edges from other units
    'num_outputs',  # edges to other units
    'input_bytes',  # on these edges
    'fastest_s',  # seconds on the fastest device
    'slowest_s',  # seconds on the slowest device
    'downward_rank_s',  # longest path from a source up to the unit
    'upward_rank_s',  # longest path from the unit to a sink
    'level',  # longest path from a source, counted in units
    *PLACE_FEATURES,
)

# Columns of `GraphFeatures.devices`.
DEVICE_FEATURES = (
    'is_cpu',
    'is_gpu',
    'is_host',
    'memory_bytes',
    'flops_per_s',
    'bandwidth_bytes_per_s',
    'launch_s',
    'link_latency_s',  # mean over the links to other devices
    'link_bytes_per_s',  # mean over the links to other devices
    'devices_on_compute',  # how many devices share its compute
)


def fingerprint() -> str:
  """16 hex digits over all names."""
  text = '|'.join(UNIT_FEATURES) + '||' + '|'.join(DEVICE_FEATURES)
  return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclasses.dataclass(frozen=True, eq=False)
class GraphFeatures:
  """Raw features of M units, E edges between them, and D devices.

  A unit is a set of ops that gets one decision. Units stand in topological
  order (by their first op), which is the order of the sequence that the
  placement network attends over.

  Attributes:
    op_types: [M] type of the costliest op of a unit.
    units: float32 [M, len(UNIT_FEATURES)].
    edges: int32 [E, 2], producer and consumer unit; no loops, no doubles.
    edge_bytes: float32 [E], all tensors between two units together.
    allowed: bool [M, D].
    devices: float32 [D, len(DEVICE_FEATURES)].
  """

  op_types: tuple[str, ...]
  units: np.ndarray
  edges: np.ndarray
  edge_bytes: np.ndarray
  allowed: np.ndarray
  devices: np.ndarray
