"""Graphs of programs without GPUs, prepared for reports about GPUs."""

import pytest

from gdp_grappler.cluster import presets
from gdp_grappler.plugin import gpu_reports
from helpers import clusters
from helpers import graph_defs

_CPU, _GPU = graph_defs.CPU(0), graph_defs.GPU(0)


def _source(devices):
  nodes = (graph_defs.node('x', 'Placeholder', (), _CPU,
                           dtype=graph_defs.FLOAT),
           graph_defs.node('silu', '_MklSwish', ['x'], _CPU,
                           T=graph_defs.FLOAT))
  return graph_defs.source(graph_defs.graph_def(*nodes), devices=devices)


def test_ops_for_cpus_and_devices_do_not_count():
  """Once fused ops and variables stayed on the host of the cluster."""
  source, told = _source((_CPU,)), []
  result, counts = gpu_reports.prepared(source, presets.preset('2xP100'),
                                        told.append)
  assert not counts
  assert [(node.op, node.device) for node in result.graph_def.node
         ] == [('Placeholder', ''), ('Sigmoid', ''), ('Mul', '')]
  assert result.name == source.name
  line, = told
  assert line.startswith(
      'the graph was made without a GPU: ops that a GPU runs replace 1 op')
  assert source.graph_def.node[1].device == _CPU


@pytest.mark.parametrize('devices,cluster', [
    ((_CPU, _GPU), presets.preset('2xP100')),
    ((_CPU,), clusters.make_cluster(0)),
])
def test_other_graphs_stay_as_they_are(devices, cluster):
  source = _source(devices)
  assert gpu_reports.prepared(source, cluster, pytest.fail) == (source, True)
