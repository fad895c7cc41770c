"""A graph and the devices of its ops, for Model Explorer.

Formats: ai-edge-model-explorer 0.1.34, `graph_builder.GraphCollection` and
`node_data_builder.GraphNodeData`. Model Explorer's own reader of GraphDefs
gives nodes numbers as ids, so data with the names of ops would match no node.
Therefore the graph is written as well, with the names of ops as ids.
"""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any

from gdp_grappler import files
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.reports import colors
from gdp_grappler.reports import node_inputs


def write(path: str | os.PathLike[str], graph: op_graph.OpGraph,
          placement: placement_lib.Placement) -> pathlib.Path:
  """Writes the graph, and a file that colours each node by its device.

  Args:
    path: File to write.
    graph: N ops.
    placement: Placement of these ops.

  Returns:
    The file with the graph in the same folder (`beside`).

  Raises:
    GdpError: a file cannot be written.
  """
  files.write_atomically(path, json.dumps(node_data(graph, placement)))
  files.write_atomically(beside(path), json.dumps(graph_collection(graph)))
  return beside(path)


def beside(path: str | os.PathLike[str]) -> pathlib.Path:
  """Returns the file with the graph: 'a.graph.json' for 'a.json'."""
  return pathlib.Path(path).with_suffix('.graph.json')


def node_data(graph: op_graph.OpGraph,
              placement: placement_lib.Placement) -> dict[str, Any]:
  """Returns the data that colour the nodes of `graph_collection`."""
  labels = placement.cluster.device_labels
  return {
      'name': f'device on {placement.cluster.name}',
      'results': {
          name: {
              'value': labels[device], 'bgColor': colors.of_device(device),
              'textColor': 'white'
          } for name, device in zip(graph.names, placement.devices.tolist())
      },
      # The label of a layer has the number of its ops on each device.
      'showExpandedSummaryOnGroupNode': True,
      'showLabelCountColumnsInChildrenStatsTable': True,
  }


def graph_collection(graph: op_graph.OpGraph) -> dict[str, Any]:
  """Returns the graph, with ops in layers by their name scopes."""
  inputs = node_inputs.of(graph)
  return {
      'label':
          graph.name, 'graphs': [{
              'id': graph.name,
              'nodes': [_node(graph, op, own) for op, own in enumerate(inputs)]
          }]
  }


def _node(graph: op_graph.OpGraph, op: int,
          inputs: list[node_inputs.Input]) -> dict[str, Any]:
  scope, _, name = graph.names[op].rpartition('/')
  attributes = {
      'op': graph.op_types[op], 'variable': graph.variables[op],
      'output bytes': str(graph.output_bytes[op]),
      'variable bytes': str(graph.param_bytes[op] or '')
  }
  return {
      'id':
          graph.names[op], 'label':
              name, 'namespace':
                  scope, 'attrs': [{'key': key, 'value': value}
                                   for key, value in attributes.items()
                                   if value],
      'incomingEdges': [{
          'sourceNodeId':
              graph.names[edge.op], 'sourceNodeOutputId':
                  'control' if edge.output is None else str(edge.output),
          'targetNodeInputId':
              str(number)
      } for number, edge in enumerate(inputs)]
  }
