"""Graphs of programs without GPUs, for reports about clusters with GPUs.

Such a report has to be about the graph that the program would have on the
cluster. There Grappler would make no fused ops for CPUs, and variables could be
on GPUs.
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
  """Returns the graph to place, and whether the devices of its ops count.

  The devices do not count if the cluster has GPUs and this program has none.
  Then the result has no devices, and no fused ops that only CPUs have.

  Args:
    source: The graph that was read.
    cluster: The cluster that the graph is placed on.
    tell: Function that is called with lines about replaced ops.
  """
  if (not any(device.type == 'GPU' for device in cluster.devices) or
      any(_GPU in name for name in source.devices)):
    return source, True
  # The user does not know the source's name, which would begin the lines.
  result = restoring.restored(dataclasses.replace(source, name='the graph'),
                              tell)
  graph_def = type(source.graph_def)()
  graph_def.CopyFrom(result.graph_def)
  for node in graph_def.node:
    node.device = ''
  return dataclasses.replace(source, graph_def=graph_def), False
