"""How long ops keep devices busy, by hand."""

import dataclasses

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.costs import busy
from gdp_grappler.evaluation.costs import fixed_costs
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.placers import group_graph
from gdp_grappler.placers import placer as placer_lib
from helpers import graphs


def _of_one_gpu() -> cluster_lib.Cluster:
  """A CPU and a GPU whose host takes 4 s a launch, and 1 s a visit."""
  cluster = presets.preset('1xH100')
  gpu = dataclasses.replace(cluster.devices[1], dispatch_s=4., lock_s=1.,
                            visit_s=1., gap_s=.5)
  return dataclasses.replace(cluster, devices=(cluster.devices[0], gpu))


def test_the_slower_of_kernels_and_host_counts() -> None:
  graph, cluster = graphs.chain(3), _of_one_gpu()
  seconds = np.array([[9., 2.], [9., 7.], [9., 0.]])
  found = busy.seconds(graph, cluster, fixed_costs.FixedCostModel(seconds),
                       seconds)
  np.testing.assert_allclose(found, [[9, 4], [9, 7.5], [9, 1]])


def test_what_the_device_and_its_host_do() -> None:
  graph, cluster = graphs.chain(3), _of_one_gpu()
  seconds = np.array([[9., 2.], [9., 7.], [9., 0.]])
  own_s, host_s = busy.parts(graph, cluster,
                             fixed_costs.FixedCostModel(seconds), seconds)
  np.testing.assert_allclose(own_s, [[9, 2.5], [9, 7.5], [9, 0]])
  np.testing.assert_allclose(host_s, [[0, 4], [0, 4], [0, 1]])


def test_further_launches_and_work_of_the_host_count() -> None:
  graph, cluster = graphs.chain(2), _of_one_gpu()
  seconds = np.ones((2, 2))
  costs = fixed_costs.FixedCostModel(seconds, kernels=np.array([3., 1.]),
                                     work=np.array([0., .5]))
  found = busy.seconds(graph, cluster, costs, seconds)
  # 3 to prepare and a lock for each of three kernels; 3 + 2 and one lock.
  np.testing.assert_allclose(found[:, 1], [6, 6])


def test_each_run_is_dispatched() -> None:
  graph = dataclasses.replace(graphs.chain(2), executions=np.array([1., 10.]))
  seconds = np.full((2, 2), 20.)
  found = busy.seconds(graph, _of_one_gpu(),
                       fixed_costs.FixedCostModel(seconds), seconds)
  np.testing.assert_allclose(found[:, 1], [20.5, 40])


def test_partitioners_share_out_what_the_host_does() -> None:
  """Not the kernels, of which one is 20 times as long as the other."""
  graph, cluster = graphs.chain(2), presets.preset('2xH100')
  seconds = np.array([[1e-7] * 3, [2e-6] * 3])
  simulator = simulator_lib.Simulator(cluster,
                                      fixed_costs.FixedCostModel(seconds))
  problem = placer_lib.Problem(graph, cluster, simulator)
  of_short, of_long = group_graph.work(graph, problem.busy_seconds,
                                       np.array([1, 2]))
  assert of_short == of_long > 2e-6
