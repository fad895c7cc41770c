"""Bounds that no placement beats, against the programme they solve."""

import numpy as np
import pytest
from scipy import optimize

from gdp_grappler.cluster import presets
from gdp_grappler.evaluation import bounds
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import registry
from helpers import clusters
from helpers import graphs
from helpers import problems


def _bound(graph, cluster, seconds):
  costs = clusters.FixedCosts(seconds)
  return bounds.lower_bound(graph, cluster, costs.op_seconds(graph, cluster))


def test_a_chain_is_its_path():
  bound = _bound(graphs.chain(4), clusters.make_cluster(2), 1.)
  assert bound.critical_path_s == 4.
  assert bound.work_s == pytest.approx(4 / 3)
  assert bound.seconds == 4.


def test_a_fan_is_its_work():
  bound = _bound(graphs.fan_out(9), clusters.make_cluster(1), 1.)
  assert bound.critical_path_s == 2.
  assert bound.seconds == pytest.approx(5.)


def test_each_op_is_on_its_fastest_allowed_device():
  graph = graphs.chain(2, allowed_types=[[True, True], [False, True]])
  bound = _bound(graph, clusters.make_cluster(1), [[1., 5.], [1., 3.]])
  assert bound.critical_path_s == 4.


def test_a_path_ends_at_a_tensor_of_the_host():
  graph = graphs.chain(3).replace(made_on_host=[False, True])
  assert _bound(graph, clusters.make_cluster(2), 1.).critical_path_s == 2.


@pytest.mark.parametrize('seed', range(4))
def test_divided_work_is_the_linear_programme(seed):
  rng = np.random.default_rng(seed)
  cluster = clusters.make_cluster(3)
  fast = rng.exponential(1., 40)
  seconds = np.stack([fast * rng.uniform(.5, 30., 40), fast, fast, 2 * fast],
                     axis=1)
  graph = graphs.make_graph((), 40)
  found = _bound(graph, cluster, seconds).work_s
  best = _programme(seconds)
  assert .98 * best <= found <= best * (1 + 1e-9)


def _programme(seconds):
  """Least T by SciPy; variables are T and x[g, u]."""
  groups, units = seconds.shape
  shares = np.kron(np.eye(groups), np.ones(units))
  loads = np.concatenate([np.diag(row) for row in seconds], axis=1)
  answer = optimize.linprog(
      np.eye(1, 1 + groups * units)[0],
      np.column_stack([-np.ones(units), loads]), np.zeros(units),
      np.column_stack([np.zeros(groups), shares]), np.ones(groups))
  return answer.x[0]


@pytest.mark.parametrize('seed', range(3))
def test_no_placement_is_faster(seed):
  graph = graphs.random_graph(seed, 300)
  cluster = clusters.make_cluster(3, latency_s=1e-6, bandwidth_bytes_per_s=1e9)
  problem = problems.make(graph, cluster, seed=seed)
  bound = bounds.lower_bound(graph, cluster, problem.op_seconds)
  for name in ('single_device', 'random', 'metis'):
    placement = registry.create(name).place(problem)
    step_s = problems.seconds_of(problem, placement)
    assert step_s >= bound.seconds * (1 - 1e-9)


def test_busiest_channel():
  # One tensor of 100 bytes and an empty one from GPU:0 to GPU:1, 1 s latency
  # and 1 s for the bytes; the empty one occupies nothing.
  graph = graphs.make_graph([(0, 1, 100), (2, 1, 0)])
  cluster = clusters.make_cluster(2)
  evaluator = simulator.Simulator(cluster, clusters.FixedCosts(1.))
  placement = placer_lib.placement_lib.Placement([1, 2, 1], cluster)
  schedule = evaluator.schedule(graph, placement)
  found = bounds.busiest_channel_s(schedule, cluster, graph)
  assert found == pytest.approx(2.)


def test_a_tensor_that_nothing_makes_occupies_no_channel():
  """It once counted, so the bound was above the step."""
  graph = graphs.make_graph([(0, 1, 100)])
  graph = graph.replace(executions=np.array([0., 1.]))
  cluster = clusters.make_cluster(2)
  evaluator = simulator.Simulator(cluster, clusters.FixedCosts(1.))
  schedule = evaluator.schedule(
      graph, placer_lib.placement_lib.Placement([1, 2], cluster))
  assert len(schedule.transfer_tensors) == 1
  assert bounds.busiest_channel_s(schedule, cluster, graph) == 0.


def test_nothing_is_sent():
  graph = graphs.chain(2)
  cluster = clusters.make_cluster(1)
  schedule = simulator.Simulator(cluster).schedule(
      graph, placer_lib.placement_lib.Placement([0, 0], cluster))
  assert bounds.busiest_channel_s(schedule, cluster, graph) == 0.


def test_control_edges_without_tensors_occupy_no_channel():
  """A graph that has control edges and no tensor once raised IndexError."""
  graph, cluster = graphs.make_graph([(0, 1)], 2,
                                     flops=1e9), presets.preset('2xP100')
  schedule = simulator.Simulator(cluster).schedule(
      graph, placer_lib.placement_lib.Placement([1, 2], cluster))
  assert len(schedule.transfer_tensors) and not len(graph.tensor_bytes)
  assert bounds.busiest_channel_s(schedule, cluster, graph) == 0.


def test_a_gpu_does_not_do_the_work_of_an_op_that_works_on_its_host():
  graph = graphs.make_graph(num_ops=4)
  graph = graph.replace(io_bytes=np.full(4, 1e6),
                        host_ops=frozenset(graph.names[1:]))
  graph = graph.replace(pins=['GPU:0'] * 4)
  cluster = clusters.make_cluster(1)
  bound = _bound(graph, cluster, 1.0)
  assert bound.work_s == pytest.approx(cluster.step_s + 1)
