"""What Model Explorer reads: a graph, and the colours of its nodes."""

import json

import pytest

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.reports import colors
from gdp_grappler.reports import model_explorer
from helpers import clusters
from helpers import graphs

# The fields of ai-edge-model-explorer 0.1.34 that we use, of those it has in
# `graph_builder` and `node_data_builder`: a type, or for a list what is in it.
_VALUE = {'value': str, 'bgColor': str, 'textColor': str}
_NODE_DATA = {
    'name': str, 'results': {str: _VALUE},
    'showExpandedSummaryOnGroupNode': bool,
    'showLabelCountColumnsInChildrenStatsTable': bool
}
_EDGE = {
    'sourceNodeId': str, 'sourceNodeOutputId': str, 'targetNodeInputId': str
}
_NODE = {
    'id': str, 'label': str, 'namespace': str,
    'attrs': [{'key': str, 'value': str}], 'incomingEdges': [_EDGE]
}
_COLLECTION = {'label': str, 'graphs': [{'id': str, 'nodes': [_NODE]}]}


def _check(value, schema):
  if isinstance(schema, list):
    assert isinstance(value, list)
    for item in value:
      _check(item, schema[0])
  elif isinstance(schema, dict) and str in schema:
    for key, item in value.items():
      assert isinstance(key, str)
      _check(item, schema[str])
  elif isinstance(schema, dict):
    assert value.keys() == schema.keys()
    for key, item in value.items():
      _check(item, schema[key])
  else:
    assert isinstance(value, schema)


@pytest.fixture(name='written')
def _written(tmp_path):
  """The graph, its node data and its collection, read from files."""
  graph = graphs.make_graph([(0, 1, 100), (0, 1, 50, 1), (0, 2), (1, 2, 8)], 4,
                            names=['a/b', 'a/"c"', 'd', 'a/b/unknown_5'])
  graph = graph.replace(variables=('', '', '', 'dense/kernel'))
  placement = placement_lib.Placement([1, 2, 1, 0], clusters.make_cluster(2))
  path = tmp_path / 'nodes.json'
  beside = model_explorer.write(path, graph, placement)
  assert beside == tmp_path / 'nodes.graph.json'
  return graph, json.loads(path.read_text()), json.loads(beside.read_text())


def test_every_op_has_the_colour_of_its_device(written):
  _, data, _ = written
  assert {name: node['value'] for name, node in data['results'].items()} == {
      'a/b': 'GPU:0', 'a/"c"': 'GPU:1', 'd': 'GPU:0', 'a/b/unknown_5': 'CPU:0'
  }
  assert data['results']['a/"c"']['bgColor'] == colors.of_device(2)
  assert data['results']['a/b'] == data['results']['d']


def test_colours_are_of_nodes_of_the_graph(written):
  graph, data, collection = written
  nodes = collection['graphs'][0]['nodes']
  assert [node['id'] for node in nodes] == list(graph.names)
  assert {node['id'] for node in nodes} == set(data['results'])


def test_layers_and_edges_are_those_of_the_graph(written):
  nodes = {node['id']: node for node in written[2]['graphs'][0]['nodes']}
  assert [(node['namespace'], node['label']) for node in nodes.values()
         ] == [('a', 'b'), ('a', '"c"'), ('', 'd'), ('a/b', 'unknown_5')]
  edges = {
      name: [tuple(edge.values()) for edge in node['incomingEdges']]
      for name, node in nodes.items()
  }
  assert edges == {
      'a/b': [], 'a/"c"': [('a/b', '0', '0'), ('a/b', '1', '1')],
      'd': [('a/"c"', '0', '0'), ('a/b', 'control', '1')], 'a/b/unknown_5': []
  }
  attributes = {
      item['key']: item['value'] for item in nodes['a/b/unknown_5']['attrs']
  }
  assert attributes['variable'] == 'dense/kernel'


def test_both_are_what_model_explorer_reads(written):
  _, data, collection = written
  _check(data, _NODE_DATA)
  _check(collection, _COLLECTION)
