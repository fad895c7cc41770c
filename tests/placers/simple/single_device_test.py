import dataclasses

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import one_device
from gdp_grappler.cluster import presets
from gdp_grappler.placers import registry
from gdp_grappler.placers.simple import single_device
from helpers import clusters
from helpers import graphs
from helpers import problems


def _place(graph, cluster, seconds):
  return problems.placed(single_device.SingleDevicePlacer(), graph, cluster,
                         seconds).tolist()


def test_the_fastest_device_wins():
  cluster = clusters.make_cluster(2)
  assert _place(graphs.chain(3), cluster, [[3, 2, 1]] * 3) == [2, 2, 2]
  assert _place(graphs.chain(3), cluster, [[1, 2, 2]] * 3) == [0, 0, 0]


def test_the_first_of_equals_wins():
  cluster = clusters.make_cluster(2)
  assert _place(graphs.chain(3), cluster, [[9, 1, 1]] * 3) == [1, 1, 1]


def test_what_may_not_be_there_goes_to_the_host_or_where_it_may():
  cluster = clusters.make_cluster(2)
  graph = graphs.chain(3, pins=['', 'GPU:0', ''], allowed_types=[[1, 1], [1, 1],
                                                                 [1, 0]])
  problem = problems.make(graph, cluster)
  rows = one_device.on_each(cluster, problem.allowed)
  assert rows[2].tolist() == [2, 1, 0]


def test_a_device_that_is_full_loses():
  cluster = clusters.make_cluster(1, memory_bytes=1000)
  big = graphs.chain(3, param_bytes=[100, 100, 100])
  assert _place(big, cluster, [[9, 1]] * 3) == [1, 1, 1]
  roomy = clusters.make_cluster(1, memory_bytes=1500)
  pinned = graphs.chain(3, param_bytes=[900, 900, 100], pins=['CPU:0', '', ''])
  assert _place(pinned, roomy, [[1, 9]] * 3) == [0, 1, 1]


def test_of_devices_that_are_full_the_least_wins():
  # All ops on GPU:1 are the fastest, but overflow by 150 bytes.
  cluster = clusters.make_cluster(2, memory_bytes=150)
  heavy = graphs.chain(3, param_bytes=[100, 100, 100], pins=['GPU:1', '', ''])
  assert _place(heavy, cluster, [[20, 9, 1]] * 3) == [2, 1, 1]


@pytest.mark.parametrize('device, expected', [(0, [0, 1, 0]), (1, [1, 1, 0]),
                                              (2, [2, 1, 0])])
def test_a_device_of_ones_choice(device, expected):
  graph = graphs.chain(3, pins=['', 'GPU:0', ''], allowed_types=[[1, 1], [1, 1],
                                                                 [1, 0]])
  problem = problems.make(graph)
  assert single_device.all_on(problem, device).devices.tolist() == expected


@pytest.mark.parametrize('name, device', [('cpu_only', 0), ('gpu_only', 1)])
def test_only_one_device(name, device):
  devices = problems.placed(registry.create(name), graphs.chain(3))
  assert devices.tolist() == [device] * 3


def test_a_graph_that_may_not_be_there_is_infeasible():
  # `cpu_only` once put such a graph on a GPU, and was the fastest placer.
  problem = problems.make(graphs.chain(3, allowed_types=[[False, True]] * 3))
  with pytest.raises(errors.InfeasiblePlacementError, match='may be on a CPU'):
    registry.create('cpu_only').place(problem)


def test_no_gpu_is_infeasible():
  problem = problems.make(graphs.chain(2), clusters.make_cluster(0))
  with pytest.raises(errors.InfeasiblePlacementError, match='no GPU'):
    registry.create('gpu_only').place(problem)


@pytest.mark.parametrize('name, kinds', [('8xV100', 2), ('2x4xP100-eth10', 4)])
def test_devices_of_a_kind_are_priced_once(name, kinds):
  problem = problems.make(graphs.chain(9), presets.preset(name))
  rows = one_device.of_each_kind(problem.cluster, problem.allowed,
                                 problem.op_seconds)
  assert len(rows) == kinds

  def seconds(rows):
    return set(problem.evaluator.price_groups(problem.graph, rows).seconds)

  assert seconds(rows) == seconds(
      one_device.on_each(problem.cluster, problem.allowed))


def test_devices_that_differ_are_priced_each():
  cluster = presets.preset('3xV100')
  graph = graphs.chain(9)
  seconds = np.tile([4., 1., 1., 2.], (graph.num_ops, 1))
  problem = problems.make(graph, cluster, seconds)
  assert len(
      one_device.of_each_kind(problem.cluster, problem.allowed,
                              problem.op_seconds)) == 3
  links = [
      dataclasses.replace(l, latency_s=1.) if l.target.endswith('GPU:1') else l
      for l in cluster.links
  ]
  problem = problems.make(graph, dataclasses.replace(cluster, links=links))
  assert len(
      one_device.of_each_kind(problem.cluster, problem.allowed,
                              problem.op_seconds)) == 3
