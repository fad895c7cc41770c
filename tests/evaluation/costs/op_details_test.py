import numpy as np

from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.costs import op_details
from helpers import graphs


def test_only_dense_kernels_run_at_the_rate_of_their_type():
  types = np.array(['float16', 'float16', 'float64', 'float32'])
  found = op_details.type_factors(['MatMul', 'Relu', 'Conv2D', 'MatMul'], types,
                                  presets.preset('1xV100').devices)
  assert found[:, 1].tolist() == [8, 1, .5, 1]
  assert found[:, 0].tolist() == [1, 1, 1 / 3, 1]


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


def test_large_tensors_are_copied_to_the_host_and_back():
  """An int32 comparison on a GPU cost only the seconds of the CPU."""
  cluster = presets.preset('1xV100')
  size, flags = 4 * 10**6, 10**6
  graph = graphs.make_graph([(0, 1, size), (1, 2, flags), (1, 3, flags),
                             (3, 4, flags), (4, 5, 8)])
  graph = graph.replace(
      io_bytes=np.array([0., size + flags, 0, 2 * flags, 16, 0]),
      host_ops=frozenset(graph.names[op] for op in (1, 3, 4)))
  latency_s, bytes_per_s, _ = cluster.link_arrays
  del latency_s
  found = op_details.host_copies_s(graph, cluster)
  assert not found[:, 0].any()
  # Op 3 reads on the host what op 1 left there, and op 4 is small.
  np.testing.assert_allclose(
      found[:, 1],
      [0, size / bytes_per_s[1, 0] + flags / bytes_per_s[0, 1], 0, 0, 0, 0])


def test_a_tensor_is_copied_once():
  cluster = presets.preset('1xV100')
  graph = graphs.make_graph([(0, 1, 10**6), (0, 1, 10**6), (1, 2, 10**6),
                             (1, 3, 10**6)])
  graph = graph.replace(io_bytes=np.full(4, 3e6),
                        host_ops=frozenset(graph.names[1:2]))
  found = op_details.host_copies_s(graph, cluster)[1, 1]
  rate = cluster.link_arrays[1][1, 0]
  assert found == 2 * 10**6 / rate


def test_tensors_of_ops_that_stay_on_the_host_are_not_copied():
  """Batches of token numbers were copied from the host to the host."""
  cluster = presets.preset('1xV100')
  # A batch, a fed value and an op of the GPU; two readers.
  kernels = np.ones((6, 2), bool)
  kernels[[0, 4], 1] = False
  graph = graphs.make_graph([(0, 3, 10**6), (1, 3, 10**6), (2, 3, 10**6),
                             (3, 4, 10**6),
                             (3, 5, 10**6)], allowed_types=kernels,
                            pins=['', 'CPU:0', 'GPU:0', '', '', ''])
  graph = graph.replace(io_bytes=np.full(6, 4e6),
                        host_ops=frozenset(graph.names[3:4]))
  rates = cluster.link_arrays[1]
  both = 10**6 / rates[1, 0] + 10**6 / rates[0, 1]
  assert op_details.host_copies_s(graph, cluster)[3, 1] == both
  alone = graph.replace(pins=['', 'CPU:0', 'CPU:0', '', '', 'CPU:0'])
  assert not op_details.host_copies_s(alone, cluster).any()


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
