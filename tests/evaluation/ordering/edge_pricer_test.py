"""Steps with further edges are those of the graph that has them."""

import hypothesis
from hypothesis import strategies
import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.ordering import edge_pricer
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from helpers import clusters
from helpers import graphs

_CLUSTER = presets.preset('2xP100')


@hypothesis.settings(max_examples=60, deadline=None, derandomize=True)
@hypothesis.given(seed=strategies.integers(0, 10_000))
def test_any_edges_cost_what_the_simulator_says_of_the_graph(seed):
  rng = np.random.default_rng(seed)
  graph = graphs.random_graph(seed, 60)
  placement = placement_lib.from_groups(
      graph, rng.integers(0, _CLUSTER.num_devices, graph.num_groups), _CLUSTER)
  simulator = simulator_lib.Simulator(_CLUSTER)
  pricer = edge_pricer.EdgePricer(graph, placement, simulator, 0., 6000)
  # Forward in topological order, across devices too.
  places = np.sort(rng.integers(0, graph.num_ops, (20, 2)), axis=1)
  edges = graph.topological_order[places[places[:, 0] < places[:, 1]]]
  found = pricer.schedule(edges)
  expected = simulator.schedule(edge_pricer.with_edges(graph, edges), placement)
  assert found.step_time_s == expected.step_time_s
  np.testing.assert_array_equal(found.start_s, expected.start_s)
  assert pricer.left == 99


@pytest.mark.parametrize('seed', range(5))
def test_prices_with_edges_are_those_of_the_graph_that_has_them(seed):
  rng = np.random.default_rng(seed)
  graph = graphs.random_graph(seed, 60)
  devices = rng.integers(0, _CLUSTER.num_devices,
                         (3, graph.num_groups))[:, graph.groups]
  places = np.sort(rng.integers(0, graph.num_ops, (20, 2)), axis=1)
  edges = graph.topological_order[places[places[:, 0] < places[:, 1]]]
  simulator = simulator_lib.Simulator(_CLUSTER)
  found = edge_pricer.price(graph, edges, devices, simulator)
  expected = simulator.price(edge_pricer.with_edges(graph, edges), devices)
  np.testing.assert_array_equal(found.seconds, expected.seconds)
  np.testing.assert_array_equal(found.peak_bytes, expected.peak_bytes)
  np.testing.assert_array_equal(found.overflow_bytes, expected.overflow_bytes)


def test_an_edge_costs_the_op_that_waits():
  graph = graphs.make_graph([], 2)
  cluster = clusters.make_cluster()
  pricer = edge_pricer.EdgePricer(
      graph, placement_lib.Placement([1, 2], cluster),
      simulator_lib.Simulator(cluster, clusters.FixedCosts(1.)), .5, 10)
  # A message takes 1 s.
  assert pricer.schedule(np.array([[0, 1]])).step_time_s == 3.5


def test_nothing_is_left_when_the_time_is_over():
  now = [7.]
  cluster = clusters.make_cluster()
  pricer = edge_pricer.EdgePricer(graphs.chain(3),
                                  placement_lib.Placement([1, 1, 2], cluster),
                                  simulator_lib.Simulator(cluster), 0., 300, 2.,
                                  lambda: now[0])
  assert pricer.left == 100
  now[0] = 8.9
  assert pricer.left == 100
  now[0] = 9.
  assert pricer.left == 0


def test_edges_in_a_circle_are_refused():
  graph = graphs.chain(3)
  cluster = clusters.make_cluster()
  pricer = edge_pricer.EdgePricer(graph,
                                  placement_lib.Placement([1, 1, 2], cluster),
                                  simulator_lib.Simulator(cluster), 0., 10)
  with pytest.raises(errors.InvalidGraphError, match='cycle'):
    pricer.schedule(np.array([[2, 0]]))
