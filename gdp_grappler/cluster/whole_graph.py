"""Extends placements of a step to the whole graph, with its initializers.

Plans are made for a step, the ops that run. A written GraphDef also has the
other nodes, and TensorFlow places these, too.
"""

from __future__ import annotations

import numpy as np

from gdp_grappler import errors
from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.graph import choices
from gdp_grappler.graph import op_graph


def positions(step: op_graph.OpGraph, whole: op_graph.OpGraph) -> np.ndarray:
  """int [N], positions of the N ops of a step in the whole graph.

  Raises:
    InvalidGraphError: the whole graph lacks one of the ops.
  """
  index = {name: op for op, name in enumerate(whole.names)}
  lacking = next((name for name in step.names if name not in index), None)
  if lacking is not None:
    raise errors.InvalidGraphError(
        f'Graph "{whole.name}" lacks op "{lacking}" of its own step: inlining '
        'its functions gave it another name. Export it without functions.')
  return np.array([index[name] for name in step.names], int)


def with_rules(step: op_graph.OpGraph,
               whole: op_graph.OpGraph) -> op_graph.OpGraph:
  """The step with the rules of the whole graph in addition to its own.

  An initializer is in the group of its variable. So an initializer that is
  pinned, has no kernel for GPUs or computes with floats restricts the variable.

  Raises:
    InvalidGraphError: the whole graph lacks an op of the step.
  """
  rows = positions(step, whole)
  allowed, same = (choices.of_all(by_op, whole.groups,
                                  whole.num_groups)[whole.groups[rows]]
                   for by_op in (whole.allowed_types, whole.same_numbers))
  # The ops of a group may have no type of device in common on which all compute
  # the same numbers, such as an initializer and an update. Then only the step's
  # own rules for numbers hold.
  same = np.where(same.any(axis=1, keepdims=True), same, step.same_numbers)
  _, groups = np.unique(whole.groups[rows], return_inverse=True)
  pins, user_pins = list(step.pins), step.user_pins.copy()
  pinned = {whole.groups[op]: op for op, pin in enumerate(whole.pins) if pin}
  for op, group in enumerate(whole.groups[rows].tolist()):
    if group in pinned and not pins[op]:
      pins[op] = whole.pins[pinned[group]]
      user_pins[op] = whole.user_pins[pinned[group]]
  return step.replace(groups=groups, allowed_types=allowed, pins=pins,
                      user_pins=user_pins, same_numbers=same)


def extend(placement: placement_lib.Placement, step: op_graph.OpGraph,
           whole: op_graph.OpGraph) -> placement_lib.Placement:
  """Devices for the whole graph, without priorities.

  Ops of the step stay where they are. The other ops of their groups, such as
  the initializer of a variable, get the same device. Other groups go to the
  host, or to the first device that they may have.

  Args:
    placement: Placement of the step.
    step: N ops.
    whole: The whole graph, with these ops and others.

  Raises:
    InvalidGraphError: the whole graph lacks an op of the step.
    InfeasiblePlacementError: the cluster cannot hold the whole graph.
  """
  rows, cluster = positions(step, whole), placement.cluster
  allowed = constraints.allowed_devices(whole, cluster)
  of_groups = constraints.fallback_devices(allowed, cluster.host)
  of_groups[whole.groups[rows]] = placement.devices
  devices = of_groups[whole.groups]
  devices[rows] = placement.devices
  return placement_lib.Placement(devices, cluster)
