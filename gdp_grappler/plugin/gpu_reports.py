"""Graphs of programs without GPUs, for reports about clusters with GPUs.

Such a report has to be that of the same program on the cluster. There Grappler
would make no ops for CPUs, and variables would be where the plan wants them.
"""

from __future__ import annotations

import dataclasses
from typing import Callable

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.sources import restoring

_GPU = '/device:GPU:'


def prepared(
    source: source_graph.SourceGraph, cluster: cluster_lib.Cluster,
    tell: Callable[[str], None]) -> tuple[source_graph.SourceGraph, bool]:
  """Returns a graph as it is placed, and whether its devices count.

  They do not count if the cluster has GPUs and this program has none. The
  result then has no devices, and no fused ops that only CPUs have.

  Args:
    source: The graph that was read.
    cluster: The cluster that the graph is placed on.
    tell: Function that is called with lines about replaced ops.
  """
  if (not any(device.type == 'GPU' for device in cluster.devices) or
      any(_GPU in name for name in source.devices)):
    return source, True
  # The lines are about a graph that the user knows by another name.
  result = restoring.restored(dataclasses.replace(source, name='the graph'),
                              tell)
  graph_def = type(source.graph_def)()
  graph_def.CopyFrom(result.graph_def)
  for node in graph_def.node:
    node.device = ''
  return dataclasses.replace(source, graph_def=graph_def), False
