"""What a price says beyond the step time."""

import dataclasses
import json

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation import price
from gdp_grappler.evaluation.ordering import control_edges
from gdp_grappler.evaluation.ordering import edge_pricer
from gdp_grappler.evaluation.ordering import order_names
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from helpers import clusters
from helpers import graphs
from helpers import orders


def test_both_orders_of_a_graph_one_can_follow():
  graph, placement, costs = orders.late_chain(4)
  simulator = simulator_lib.Simulator(placement.cluster, costs)
  found = price.price(graph, placement, simulator)
  assert (found.order, found.fifo_s, found.ordered_s) == ('fifo', 10., 6.)
  assert found.schedule.step_time_s == found.evaluation.step_time_s == 10.
  assert found.critical_path_s == 6.  # Sender, message, receiver.
  assert found.busiest_s == 5.  # Everything on GPU:0.
  fields = json.loads(json.dumps(found.to_json(graph)))
  assert fields['step_time_s'] == 10. and fields['ordered_step_time_s'] == 6.
  assert fields['transfers'] == {'tensors': 0, 'messages': 1, 'bytes': 0}
  assert [d['busy_s'] for d in fields['devices']] == [0., 5., 4.]
  assert [d['ops'] for d in fields['devices']] == [0, 5, 1]


def test_the_order_that_is_asked_for_is_drawn():
  graph, placement, costs = orders.late_chain(4)
  simulator = simulator_lib.Simulator(placement.cluster, costs)
  found = price.price(graph, placement, simulator, 'critical_path')
  assert found.schedule.step_time_s == 6. and found.fifo_s == 10.
  assert found.placement.priorities is not None
  own = placement_lib.Placement(placement.devices, placement.cluster,
                                [9., 8., 7., 6., 5., 0.])
  assert price.price(graph, own, simulator).ordered_s == 10.
  assert price.price(graph, own, simulator).order == 'critical_path'
  assert price.price(graph, own, simulator, 'fifo').placement.priorities is None
  with pytest.raises(errors.GdpError, match='Unknown order "best"'):
    price.price(graph, own, simulator, 'best')


def test_a_price_prints_as_one_line():
  """Once a notebook showed the whole graph and the whole schedule."""
  graph, placement, costs = orders.late_chain(4)
  simulator = simulator_lib.Simulator(placement.cluster, costs)
  assert repr(price.price(graph, placement, simulator)) == (
      f'<Price {graph.name} on {placement.cluster.name}: step 1e+04 ms, '
      'ordered 6000 ms (simulated)>')


def test_an_ordered_price_keeps_its_edges(monkeypatch):
  """A step that ran by a price once had the edges of another search."""
  graph, placement, costs = orders.late_chain(4)
  simulator = simulator_lib.Simulator(placement.cluster, costs)
  found = price.price(graph, placement, simulator, 'critical_path')
  monkeypatch.setattr(edge_pricer, 'EdgePricer', None)  # No search.
  edges = control_edges.chooser(simulator)(graph, found.placement)
  assert len(edges)
  np.testing.assert_array_equal(found.graph.edges,
                                edge_pricer.with_edges(graph, edges).edges)


def test_the_ordered_step_is_that_of_its_control_edges():
  """It once left out the seconds of edges, which the plugin's line has."""
  simulator = simulator_lib.Simulator(presets.preset('2xP100'))
  graph = graphs.random_graph(0, 200)
  placement = placement_lib.from_groups(
      graph,
      np.random.default_rng(0).integers(1, 3, graph.num_groups),
      simulator.cluster)
  found = price.price(graph, placement, simulator, 'critical_path')
  order = control_edges.control_edges(graph, placement, simulator)
  assert found.ordered_s == order.with_edges_s > found.schedule.step_time_s


def test_tensors_are_counted_once_per_device():
  graph = graphs.fan_out(4, 300)
  placement = placement_lib.Placement([1, 1, 2, 2, 0], clusters.make_cluster())
  found = price.price(graph, placement,
                      simulator_lib.Simulator(placement.cluster))
  assert found.to_json(graph)['transfers'] == {
      'tensors': 2, 'messages': 0, 'bytes': 600
  }


def test_a_tensor_that_nothing_makes_is_not_counted():
  """A condition that is not taken once added its bytes to the transfers."""
  graph = graphs.make_graph([(0, 2, 100), (1, 2, 300)])
  graph = graph.replace(executions=np.array([1., 0., 1.]))
  placement = placement_lib.Placement([1, 1, 2], clusters.make_cluster())
  found = price.price(graph, placement,
                      simulator_lib.Simulator(placement.cluster))
  assert found.to_json(graph)['transfers'] == {
      'tensors': 1, 'messages': 0, 'bytes': 100
  }


def test_no_order_is_faster_than_the_bounds():
  cluster = presets.preset('4xP100')
  simulator = simulator_lib.Simulator(cluster)
  for seed in range(10):
    graph = graphs.random_graph(seed, 150)
    placement = placement_lib.from_groups(
        graph,
        np.random.default_rng(seed).integers(0, cluster.num_devices,
                                             graph.num_groups), cluster)
    for order in order_names.ORDERS:
      found = price.price(graph, placement, simulator, order)
      least_s = max(found.critical_path_s, found.busiest_s)
      assert min(found.fifo_s, found.ordered_s) >= least_s * (1 - 1e-12)


def test_a_graph_with_control_edges_and_no_tensor_has_a_price():
  """It once raised IndexError where messages occupy a device."""
  cluster = clusters.synchronous(clusters.make_cluster(2))
  cluster = dataclasses.replace(
      cluster, devices=tuple(
          dataclasses.replace(device, copy_s=1e-5)
          for device in cluster.devices))
  graph = graphs.make_graph([(0, 1), (1, 2)], 3, flops=1e9)
  placement = placement_lib.Placement([1, 2, 1], cluster)
  found = price.price(graph, placement, simulator_lib.Simulator(cluster))
  assert found.to_json(graph)['transfers'] == {
      'tensors': 0, 'messages': 2, 'bytes': 0
  }
  assert found.fifo_s >= found.busiest_s > 0
