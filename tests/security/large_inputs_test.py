"""Graphs of unusual sizes take time and memory in proportion."""

from __future__ import annotations

import json

import pytest
from tensorflow.core.framework import graph_pb2

from gdp_grappler import errors
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph.costed import cost_graph
from gdp_grappler.graph.costed import graph_json
from gdp_grappler.graph.sources import sources

_LONG = 20_000


def test_a_control_chain(tmp_path):
  graph_def = graph_pb2.GraphDef()
  graph_def.node.add(name='n0', op='NoOp')
  for i in range(1, _LONG):
    graph_def.node.add(name=f'n{i}', op='NoOp', input=[f'^n{i - 1}'])
  path = tmp_path / 'chain.pb'
  path.write_bytes(graph_def.SerializeToString())
  graph = graph_def_io.read(sources.load(str(path)))
  assert graph.topological_order.tolist() == list(range(_LONG))


def test_a_control_chain_with_costs():
  data = json.dumps({
      'nodes': [{'name': f'n{i}', 'seconds': 1} for i in range(_LONG)],
      'control_edges': [[f'n{i}', f'n{i + 1}'] for i in range(_LONG - 1)]
  }).encode()
  graph, _ = graph_json.read('chain.json', data)
  assert graph.topological_order.tolist() == list(range(_LONG))


def test_outputs_that_nobody_described():
  """A hundred thousand such nodes are five megabytes, and took 50 GB."""
  nodes = ''.join(
      f'node {{ name: "n{i}" id: {i + 2} compute_cost: 1 '
      f'input_info {{ preceding_node: {i + 1} preceding_port: 65535 }} }}'
      for i in range(100))
  with pytest.raises(errors.InvalidGraphError, match='no output_info'):
    cost_graph.read(
        'costs.pbtxt',
        f'node {{ name: "first" id: 1 compute_cost: 1 }} {nodes}'.encode())
