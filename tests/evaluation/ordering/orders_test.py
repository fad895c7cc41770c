import numpy as np
import pytest

from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.ordering import critical_path_order
from gdp_grappler.evaluation.ordering import depth_first
from gdp_grappler.evaluation.ordering import layer_step_order
from gdp_grappler.evaluation.ordering import orders
from gdp_grappler.evaluation.simulation import simulator
from helpers import graphs
from helpers import unrolled


def _of(graph, devices):
  prices = simulator.Simulator(presets.preset('2xP100'))
  return prices, orders.of(graph, devices, prices.cluster,
                           prices.op_seconds(graph))


@pytest.mark.parametrize('seed', range(3))
def test_ranks_first_then_others(seed):
  graph = unrolled.make(3, 4).graph
  devices = np.random.default_rng(seed).integers(1, 3, graph.num_ops)
  prices, found = _of(graph, devices)
  ranks = critical_path_order.upward_ranks(graph, devices, prices.cluster,
                                           prices.op_seconds(graph))
  expected = [
      ranks,
      depth_first.priorities(graph),
      layer_step_order.priorities(graph, ranks)
  ]
  np.testing.assert_array_equal(found, expected)


def test_two_without_time_steps():
  graph = graphs.chain(4)
  assert len(_of(graph, np.ones(4, int))[1]) == 2
