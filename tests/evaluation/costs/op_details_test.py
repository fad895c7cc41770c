import dataclasses

import numpy as np
import pytest

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.costs import op_details
from helpers import graphs


def test_only_dense_kernels_run_at_the_rate_of_their_type():
  types = np.array(['float16', 'float16', 'float64', 'float32'])
  details = dataclasses.replace(op_details.plain(4), element_types=types)
  found = op_details.rate_factors(['MatMul', 'Relu', 'Conv2D', 'MatMul'],
                                  details,
                                  presets.preset('1xV100').devices)
  assert found[:, 1].tolist() == [8, 1, .5, 1]
  assert found[:, 0].tolist() == [1, 1, 1 / 3, 1]


@pytest.mark.parametrize('card, factor', [('P100', 3), ('V100', 8)])
def test_winograd_or_units_for_float16_whatever_is_faster(card, factor):
  """On P100, mixed_float16 was priced 2.8 times as long as float32."""
  details = dataclasses.replace(op_details.plain(1),
                                winograd_shares=np.array([1.]),
                                element_types=np.array(['float16']))
  found = op_details.rate_factors(['Conv2D'], details,
                                  presets.preset(f'1x{card}').devices)
  assert found[0, 1] == pytest.approx(factor)


@pytest.mark.parametrize('card, factors', [('P100', [1, 3, 1.5, .5]),
                                           ('K40', [1, 1, 1, 1 / 3]),
                                           ('H100', [1, 1, 1, 67 / 494.5])])
def test_winograd_saves_a_part_of_float32_on_cards_without_tf32(card, factors):
  """VGG16 was priced three times too long on P100, V100 and T4."""
  details = dataclasses.replace(
      op_details.plain(4), winograd_shares=np.array([0, 1, .5, 1]),
      element_types=np.array(['float32'] * 3 + ['float64']))
  kinds = ['Conv2D', 'Conv2D', 'StatefulPartitionedCall', 'Conv2D']
  found = op_details.rate_factors(kinds, details,
                                  presets.preset(f'1x{card}').devices)
  np.testing.assert_allclose(found[:, 1], factors)


def test_which_ops_launch_nothing():
  """Ops of any size that work on the host cost nothing on a GPU."""
  found = op_details.launch_nothing(['NoOp', 'AddV2', 'AddV2', 'AddV2'],
                                    np.array([1e9, 12, 12, 1e9]),
                                    np.array([False, True, False, True]),
                                    presets.preset('1xV100').devices)
  assert found.T.tolist() == [[True, False, False, False],
                              [True, True, False, False]]


def test_an_op_that_works_on_the_host_takes_the_seconds_of_its_own_host():
  devices = presets.preset('2x1xV100-eth10').devices
  hosts = [d.name.partition('/device')[0] for d in devices]
  seconds = np.arange(1., 1 + len(devices))[None].repeat(3, 0)
  idle = np.zeros(seconds.shape, bool)
  idle[1] = True
  on_host = np.array([True, True, False])
  own = seconds[0].tolist()
  cpus = {h: s for h, s, d in zip(hosts, own, devices) if d.type == 'CPU'}
  op_details.take_hosts_seconds(seconds, on_host, idle, devices)
  assert seconds[0].tolist() == [cpus[h] for h in hosts] != own
  assert seconds[1].tolist() == seconds[2].tolist() == own


def test_seconds_stay_if_the_cpu_of_the_host_is_not_given():
  gpu = presets.preset('1xV100').devices[1]
  seconds = np.ones((1, 1))
  op_details.take_hosts_seconds(seconds, np.array([True]), np.array([[False]]),
                                [gpu])
  assert seconds.tolist() == [[1]]


def test_ops_with_large_tensors_on_the_host_leave_gpus():
  graph = graphs.make_graph(num_ops=3)
  graph = graph.replace(io_bytes=np.array([1e6, 1e6, 16]),
                        host_ops=frozenset(graph.names[1:]))
  assert op_details.leave_gpus(graph).tolist() == [False, True, False]


def test_the_cpu_of_each_host():
  devices = presets.preset('2x1xV100-eth10').devices
  cpus = {
      cluster_lib.host(d.name): i for i, d in enumerate(devices)
      if d.type == 'CPU'
  }
  found = op_details.hosts(devices).tolist()
  assert found == [cpus[cluster_lib.host(d.name)] for d in devices]
  assert op_details.hosts(devices[1:2]).tolist() == [0]


def test_where_tensors_are_made_and_read():
  cluster = presets.preset('2xP100')
  cpu = cluster.host
  first, second = [d for d in range(cluster.num_devices) if d != cpu]
  edges = [(0, 1, 8), (1, 2, 8), (2, 3, 8), (0, 3)]
  graph = graphs.make_graph(edges).replace(
      made_on_host=[True, False, False],
      read_on_host=[True, True, False, False])
  made, read = op_details.tensor_places(
      graph, cluster, np.array([first, second, second, first]))
  assert made.tolist() == [cpu, second, second, first]
  assert read.tolist() == [cpu, cpu, first, first]


def test_details_of_a_graph_and_of_some_of_its_ops():
  graph = graphs.make_graph(num_ops=3)
  graph = graph.replace(rounds_by_name={graph.names[1]: 5.},
                        element_types_by_name={graph.names[2]: 'float16'},
                        host_ops=frozenset(graph.names[1:2]))
  some = op_details.of(graph).of_rows(np.array([1, 2]))
  assert some.rounds.tolist() == [5, 1]
  assert some.element_types.tolist() == ['float32', 'float16']
  assert some.works_on_host.tolist() == [True, False]


def test_plain_ops():
  plain = op_details.plain(2)
  assert plain.rounds.tolist() == [1, 1]
  assert plain.element_types.tolist() == ['float32'] * 2
  assert not plain.works_on_host.any()
