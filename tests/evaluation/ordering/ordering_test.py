"""Upward ranks, and placements with them."""

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.ordering import order
from gdp_grappler.evaluation.ordering import ordering
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from helpers import clusters
from helpers import graphs
from helpers import orders


def _ranks_by_recursion(graph, devices, cluster, seconds):
  """The definition, op by op."""
  latency_s, bytes_per_s = cluster.link_arrays[:2]

  def rank(op):
    longest = 0.
    for (source, target), size in zip(graph.edges.tolist(),
                                      graph.edge_bytes.tolist()):
      if source == op:
        a, b = devices[source], devices[target]
        transfer_s = 0. if a == b else (latency_s[a, b]
                                        + size / bytes_per_s[a, b])
        longest = max(longest, transfer_s + rank(target))
    return seconds[op, devices[op]] + longest

  return [rank(op) for op in range(graph.num_ops)]


def test_ranks_one_can_compute_in_the_head():
  # 0 -> 1 -> 3 and 0 -> 2 -> 3; latency 1 s, 100 bytes take another second.
  graph = graphs.make_graph([(0, 1, 100), (0, 2, 300), (1, 3, 100), (2, 3)])
  ranks = ordering.upward_ranks(
      graph, [1, 2, 1, 1], clusters.make_cluster(),
      np.array([[9., 1., 2.], [9., 2., 4.], [9., 5., 9.], [9., 3., 9.]]))
  # 3: 3. 2: 5 + 3. 1: 4 + (1 + 1) + 3. 0: 1 + max(2 + 9, 0 + 8).
  assert ranks.tolist() == [12., 9., 8., 3.]


def test_ranks_are_those_of_the_definition():
  for seed in range(30):
    graph = graphs.random_graph(seed, 12)
    rng = np.random.default_rng(seed)
    cluster = clusters.make_cluster()
    devices = rng.integers(0, 3, graph.num_ops)
    seconds = rng.random((graph.num_ops, 3))
    np.testing.assert_allclose(
        ordering.upward_ranks(graph, devices, cluster, seconds),
        _ranks_by_recursion(graph, devices, cluster, seconds), rtol=1e-12)


def test_the_first_rank_is_the_step_where_nothing_waits():
  graph = graphs.chain(6, 250)
  placement = placement_lib.Placement([1, 2, 2, 1, 0, 0],
                                      clusters.make_cluster())
  simulator = simulator_lib.Simulator(placement.cluster)
  ordered = ordering.with_critical_path_order(graph, placement, simulator)
  step_s = simulator.evaluate(graph, placement).step_time_s
  assert ordered.priorities[0] == pytest.approx(step_s, rel=1e-12)


def test_cluster_and_costs_are_those_of_the_evaluator():
  graph = graphs.chain(2, 100)
  placement = placement_lib.Placement([1, 2], clusters.make_cluster())
  slow = clusters.make_cluster(latency_s=7.)
  ordered = ordering.with_critical_path_order(
      graph, placement,
      simulator_lib.Simulator(slow, clusters.FixedCosts([2., 3.])))
  assert ordered.priorities.tolist() == [2. + 7. + 1. + 3., 3.]
  assert ordered.cluster is placement.cluster
  np.testing.assert_array_equal(ordered.devices, placement.devices)


def test_what_cannot_be_ordered():
  graph = graphs.chain(2)
  cluster = clusters.make_cluster()
  simulator = simulator_lib.Simulator(cluster)
  for devices in ([1], [1, 3], [1, -1]):
    with pytest.raises(ValueError, match='needs 2 devices out of 0 .. 2'):
      ordering.with_critical_path_order(
          graph, placement_lib.Placement(devices, cluster), simulator)
  with pytest.raises(ValueError, match='has 2'):
    ordering.with_critical_path_order(
        graph, placement_lib.Placement([1, 1], cluster),
        simulator_lib.Simulator(clusters.make_cluster(1)))
  with pytest.raises(errors.InvalidGraphError, match='cycle'):
    ordering.with_critical_path_order(graphs.make_graph([(0, 1), (1, 0)]),
                                      placement_lib.Placement([1, 1], cluster),
                                      simulator)


def test_best_order_where_order_gains():
  graph, placement, costs = orders.late_chain(4)
  simulator = simulator_lib.Simulator(placement.cluster, costs)
  best = ordering.best_order(graph, placement, simulator)
  # FIFO: four fillers of 1 s, then the sender, 1 s of latency, the receiver.
  assert (best.fifo_s, best.ordered_s) == (5. + 1. + 4., 1. + 1. + 4.)
  assert best.order == order.CRITICAL_PATH
  assert simulator.evaluate(graph, best.placement).step_time_s == best.ordered_s


def test_best_order_is_never_the_slower_one():
  slower = 0
  cluster = presets.preset('4xP100')
  simulator = simulator_lib.Simulator(cluster)
  for seed in range(40):
    graph = graphs.random_graph(seed, 120)
    placement = placement_lib.from_groups(
        graph,
        np.random.default_rng(seed).integers(0, cluster.num_devices,
                                             graph.num_groups), cluster)
    best = ordering.best_order(graph, placement, simulator)
    slower += best.ordered_s > best.fifo_s
    assert simulator.evaluate(graph, best.placement).step_time_s == min(
        best.fifo_s, best.ordered_s)
  assert slower  # Anomalies happen; else this shows nothing.


def test_an_unrolled_lstm_gains_where_fifo_delays_the_way_back():
  for steps in (8, 16, 24):
    graph, devices = orders.unrolled_lstm(4, steps)
    cluster = presets.preset('4xP100')
    best = ordering.best_order(graph, placement_lib.Placement(devices, cluster),
                               simulator_lib.Simulator(cluster))
    assert best.ordered_s < 0.98 * best.fifo_s


def test_in_order_keeps_priorities_and_gives_them_where_they_pay():
  graph, placement, costs = orders.late_chain(4)
  simulator = simulator_lib.Simulator(placement.cluster, costs)
  paid = ordering.in_order(graph, placement, simulator, order.CRITICAL_PATH)
  assert paid.priorities is not None
  assert ordering.in_order(graph, placement, simulator).priorities is None
  assert ordering.in_order(graph, paid, simulator) is paid
  assert ordering.in_order(graph, paid, simulator,
                           order.FIFO).priorities is None
  # Without fillers there is nothing to wait for, and nothing to gain.
  graph, placement, costs = orders.late_chain(0)
  simulator = simulator_lib.Simulator(placement.cluster, costs)
  same = ordering.in_order(graph, placement, simulator, order.CRITICAL_PATH)
  assert same.priorities is None
