"""Names of the features, and their fingerprint.

A policy has the fingerprint of the schema that it was trained with. After a
change of these lists, old policies are refused, because they would misread
columns.
"""

from __future__ import annotations

import dataclasses
import hashlib

import numpy as np

# Position of a unit in a structure that repeats. Units of one position form a
# block. The feature is the share of the work, 0 to 1, before the middle of the
# block, or -1 if the unit has no position. So if devices have equal amounts of
# consecutive work, their intervals of this feature are equally long.
PLACE_FEATURES = (
    'layer_place',  # coordinate `layer` of `structure.coordinates`
    'segment_place',  # coordinate `segment`
    'branch_place',  # coordinate `branch`
    'variable_place',  # coordinate `variable`
    'repetition_place',  # coordinate `repetition`
    'order_place',  # number in topological order
    'depth_place',  # longest path to a source or to a sink: the shorter one
)

# Columns of `GraphFeatures.units`: HDP's operation embedding (Mirhoseini et al.
# 2018, section 3: type, output sizes, adjacency), and inputs of the simulator.
UNIT_FEATURES = (
    'flops',  # arithmetic operations
    'io_bytes',  # read and written
    'output_bytes',  # sent to consumers
    'param_bytes',  # variables
    'num_ops',  # ops in the unit
    'num_inputs',  # edges from other units
    'num_outputs',  # edges to other units
    'input_bytes',  # bytes on the edges from other units
    'fastest_s',  # seconds if each op is on its fastest device
    'slowest_s',  # seconds if each op is on its slowest device
    'downward_rank_s',  # longest path from a source up to the unit
    'upward_rank_s',  # longest path from the unit to a sink
    'level',  # longest path from a source, counted in ops
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
    'devices_on_compute',  # number of devices on its compute unit
)


def fingerprint() -> str:
  """Returns 16 hex digits that depend on all names."""
  text = '|'.join(UNIT_FEATURES) + '||' + '|'.join(DEVICE_FEATURES)
  return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclasses.dataclass(frozen=True, eq=False)
class GraphFeatures:
  """Raw features of M units, E edges between them, and D devices.

  A unit is a set of ops that gets one decision. Units are in the topological
  order of their first ops. The placement network attends over the sequence of
  units in this order.

  Attributes:
    op_types: [M], type of the costliest op of each unit.
    units: float32 [M, len(UNIT_FEATURES)], features of units.
    edges: int32 [E, 2], producer and consumer unit. They differ, and no edge
      occurs twice.
    edge_bytes: float32 [E], bytes of all tensors on each edge.
    allowed: bool [M, D], whether a unit may be on a device.
    devices: float32 [D, len(DEVICE_FEATURES)], features of devices.
  """

  op_types: tuple[str, ...]
  units: np.ndarray
  edges: np.ndarray
  edge_bytes: np.ndarray
  allowed: np.ndarray
  devices: np.ndarray
