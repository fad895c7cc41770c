import numpy as np
import pytest

from gdp_grappler.evaluation.ordering import layer_step_order
from gdp_grappler.graph import contraction
from gdp_grappler.graph import unique_rows
from gdp_grappler.graph.structure import coordinates
from helpers import graphs
from helpers import unrolled


def _nodes(graph):
  known = coordinates.of(graph)
  tiles = unique_rows.distinct([known['layer'], known['segment']])[1]
  return contraction.nodes(graph, tiles)


@pytest.mark.parametrize('seed', range(4))
def test_nodes_go_by_their_last_op_and_ops_by_their_ranks(seed):
  graph = unrolled.make(3, 5).graph
  ranks = np.random.default_rng(seed).random(graph.num_ops)
  found = layer_step_order.priorities(graph, ranks)
  nodes = _nodes(graph)
  lowest = [ranks[nodes == node].min() for node in nodes]
  order = sorted(range(graph.num_ops), key=lambda op: (lowest[op], ranks[op]))
  assert np.argsort(found, kind='stable').tolist() == order


def test_no_time_steps_no_order():
  assert layer_step_order.priorities(graphs.chain(4), np.arange(4.)) is None
  single = unrolled.make(3, 1).graph
  assert layer_step_order.priorities(single, np.ones(single.num_ops)) is None


def test_nodes_that_are_ops_have_their_order_already():
  graph = unrolled.make(2, 4).graph
  known = coordinates.of(graph)
  values = np.full(known.values.shape, -1)
  for name in ('layer', 'segment'):
    values[:, known.names.index(name)] = np.arange(graph.num_ops)
  other = graph.replace(coordinates=values)
  assert layer_step_order.priorities(other, np.ones(graph.num_ops)) is None
