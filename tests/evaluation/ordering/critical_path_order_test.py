"""Upward ranks, and placements with them."""

import dataclasses

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.ordering import critical_path_order
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from helpers import clusters
from helpers import graphs


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
  ranks = critical_path_order.upward_ranks(
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
        critical_path_order.upward_ranks(graph, devices, cluster, seconds),
        _ranks_by_recursion(graph, devices, cluster, seconds), rtol=1e-12)


def test_the_first_rank_is_the_step_where_nothing_waits():
  graph = graphs.chain(6, 250)
  placement = placement_lib.Placement([1, 2, 2, 1, 0, 0],
                                      clusters.make_cluster())
  simulator = simulator_lib.Simulator(placement.cluster)
  ordered = critical_path_order.with_critical_path_order(
      graph, placement, simulator)
  step_s = simulator.evaluate(graph, placement).step_time_s
  assert ordered.priorities[0] == pytest.approx(step_s, rel=1e-12)


def test_cluster_and_costs_are_those_of_the_evaluator():
  graph = graphs.chain(2, 100)
  placement = placement_lib.Placement([1, 2], clusters.make_cluster())
  slow = clusters.make_cluster(latency_s=7.)
  ordered = critical_path_order.with_critical_path_order(
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
      critical_path_order.with_critical_path_order(
          graph, placement_lib.Placement(devices, cluster), simulator)
  with pytest.raises(ValueError, match='has 2'):
    critical_path_order.with_critical_path_order(
        graph, placement_lib.Placement([1, 1], cluster),
        simulator_lib.Simulator(clusters.make_cluster(1)))
  with pytest.raises(errors.InvalidGraphError, match='cycle'):
    critical_path_order.with_critical_path_order(
        graphs.make_graph([(0, 1), (1, 0)]),
        placement_lib.Placement([1, 1], cluster), simulator)


def test_what_runs_ahead_hears_of_a_copy_later():
  graph = graphs.make_graph([(0, 1, 100), (1, 2, 100), (2, 3, 100)])
  cluster = clusters.make_cluster()
  cluster = dataclasses.replace(
      cluster, devices=tuple(
          dataclasses.replace(d, launch='asynchronous', callback_s=callback_s
                             ) if d.type == 'GPU' else d
          for d, callback_s in zip(cluster.devices, (0., .25, .5))))
  ranks = critical_path_order.upward_ranks(graph, [0, 1, 2, 0], cluster,
                                           np.zeros((4, 3)))
  # Each copy takes 2 s; the sender's manager hears of it, but not a host's.
  assert ranks.tolist() == [7., 4.75, 2.5, 0.]


def test_large_host_ops_of_a_gpu_count_where_they_work():
  """The longest path had copies to and from the GPU, and exceeded the step."""
  graph = graphs.chain(3, tensor_bytes=50_000_000)
  graph = graph.replace(host_ops=frozenset(graph.names[1:2]),
                        io_bytes=np.full(3, 1e8))
  cluster = presets.preset('1xV100')
  seconds = np.ones((3, 2))
  on_gpu, on_cpu = (critical_path_order.upward_ranks(graph, np.array(devices),
                                                     cluster, seconds)
                    for devices in ([0, 1, 0], [0, 0, 0]))
  assert on_gpu.tolist() == on_cpu.tolist() == [3, 2, 1]
