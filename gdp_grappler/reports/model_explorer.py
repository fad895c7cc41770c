"""Where ops are, as "node data" for Model Explorer.

Format: ai-edge-model-explorer 0.1.34, `node_data_builder.GraphNodeData`, which
Model Explorer shows over the graph that is open, where that has the names of
the ops as ids of its nodes. Its own reader of GraphDefs numbers them instead.
"""

from __future__ import annotations

import json
import os
from typing import Any

from gdp_grappler import files
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.reports import colors


def write(path: str | os.PathLike[str], graph: op_graph.OpGraph,
          placement: placement_lib.Placement) -> None:
  """Writes a file that colours each node by its device.

  Args:
    path: File to write.
    graph: N ops.
    placement: Of these ops.

  Raises:
    GdpError: the file cannot be written.
  """
  files.write_atomically(path, json.dumps(node_data(graph, placement)))


def node_data(graph: op_graph.OpGraph,
              placement: placement_lib.Placement) -> dict[str, Any]:
  """The object that `write` writes."""
  labels = placement.cluster.device_labels
  return {
      'name': f'device on {placement.cluster.name}',
      'results': {
          name: {
              'value': labels[device], 'bgColor': colors.of_device(device),
              'textColor': 'white'
          } for name, device in zip(graph.names, placement.devices.tolist())
      },
      # How many of a layer's ops are where, on the layer itself.
      'showExpandedSummaryOnGroupNode': True,
      'showLabelCountColumnsInChildrenStatsTable': True,
  }
