"""Node data for Model Explorer."""

import json

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.reports import colors
from gdp_grappler.reports import model_explorer
from helpers import clusters
from helpers import graphs


def test_every_op_has_the_colour_of_its_device(tmp_path):
  graph = graphs.make_graph([(0, 1, 100)], 3, names=['a/b', 'a/"c"', 'd'])
  placement = placement_lib.Placement([1, 2, 1], clusters.make_cluster(2))
  path = tmp_path / 'nodes.json'
  model_explorer.write(path, graph, placement)
  data = json.loads(path.read_text())
  assert {name: node['value'] for name, node in data['results'].items()
         } == {'a/b': 'GPU:0', 'a/"c"': 'GPU:1', 'd': 'GPU:0'}
  assert data['results']['a/"c"']['bgColor'] == colors.of_device(2)
  assert data['results']['a/b'] == data['results']['d']
