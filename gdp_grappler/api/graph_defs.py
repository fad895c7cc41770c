"""Writes placed steps as GraphDefs with control edges.

The GraphDef also has the ops that no step runs, such as initializers.
"""

from __future__ import annotations

import dataclasses
import pathlib

import numpy as np

from gdp_grappler import errors
from gdp_grappler import files
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import whole_graph
from gdp_grappler.evaluation.ordering import control_edges
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.placers import step as step_lib

_SUFFIXES = ('.json', '.pb', '.pbtxt')


def check_suffix(path: str) -> None:
  """Checks that the suffix of a path selects a format.

  Raises:
    GdpError: the suffix is unknown.
  """
  if pathlib.Path(path).suffix not in _SUFFIXES:
    raise errors.GdpError(f'Cannot tell what to write to {path}: end its name '
                          'in .json (plan), .pb or .pbtxt (GraphDef).')


def order(graph: op_graph.OpGraph, needed: op_graph.OpGraph,
          placement: placement_lib.Placement,
          simulator: simulator_lib.Simulator) -> control_edges.Order:
  """Returns the control edges that enforce the priorities of a placement.

  An edge from an op that the fetches do not need would make this op run. So
  edges join only ops that the fetches need.

  Args:
    graph: The step, with N ops.
    needed: The part of the step that the fetches need.
    placement: Placement of the N ops, with priorities.
    simulator: Simulator of the placement's cluster.
  """
  assert placement.priorities is not None  # There is an order.
  runs = set(needed.names)
  ops = np.array([i for i, name in enumerate(graph.names) if name in runs])
  found = control_edges.control_edges(
      needed,
      placement_lib.Placement(placement.devices[ops], placement.cluster,
                              placement.priorities[ops]), simulator)
  return dataclasses.replace(found, control_edges=ops[found.control_edges])


def write(path: str, whole: step_lib.Step, graph: op_graph.OpGraph,
          placement: placement_lib.Placement, edges: np.ndarray) -> None:
  """Writes a whole graph, with the devices and the edges of its step.

  Ops that the step does not need are marked, so that a reader finds the step.

  Args:
    path: The file. A name in .pbtxt means protobuf text, else binary.
    whole: The whole graph, which has TensorFlow ops.
    graph: The step, with N ops.
    placement: Placement of the N ops.
    edges: int [C, 2], control edges between the N ops.

  Raises:
    GdpError: the file cannot be written, or an op of the step is not in the
      whole graph.
  """
  from google.protobuf import text_format

  from gdp_grappler.graph import graph_def_io
  from gdp_grappler.graph import start_order
  from gdp_grappler.graph.sources import pruning
  assert whole.source is not None  # There is a GraphDef to write.
  extended = whole_graph.extend(placement, graph, whole.graph)
  rows = whole_graph.positions(graph, whole.graph)
  placed = graph_def_io.write(
      whole.source.graph_def, extended.device_strings(),
      [(rows[first], rows[then]) for first, then in edges])
  needed = set(rows.tolist())
  for row, node in enumerate(placed.node):
    # Another step may have marked the node before.
    node.attr.pop(pruning.UNNEEDED_ATTRIBUTE, None)
    if row not in needed:
      node.attr[pruning.UNNEEDED_ATTRIBUTE].b = True
  placed = start_order.fix(placed)
  files.write_atomically(
      path,
      text_format.MessageToString(placed).encode()
      if path.endswith('.pbtxt') else placed.SerializeToString())
