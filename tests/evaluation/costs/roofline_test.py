"""Prices of ops that one can work out in the head."""

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from gdp_grappler.cluster import device_figures
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.costs import op_families
from gdp_grappler.evaluation.costs import roofline
from helpers import clusters
from helpers import graphs

# Devices of the test cluster do 5e8 useful FLOP/s, move 1e9 bytes/s and need
# 1 ms to launch. The first one is a CPU, the others are GPUs.
_TYPES = ('MatMul', 'BatchMatMulV2', 'Conv2D', 'Conv2DBackpropFilter', 'Relu',
          'DepthwiseConv2dNative', 'Transpose', 'GatherV2', 'Softmax', 'Sum',
          'TopKV2', 'SomethingUnheardOf')


def _seconds(op_type='MatMul', **fields):
  graph = graphs.make_graph(num_ops=1, op_types=[op_type], **fields)
  return roofline.Roofline().op_seconds(graph, clusters.make_cluster())[0]


def test_arithmetic_bounds_dense_ops():
  # GPUs take 4 us to fill their multipliers and to drain them.
  np.testing.assert_allclose(_seconds(flops=1e9, io_bytes=1e9),
                             np.add([2, 2 + 4e-6, 2 + 4e-6], 1e-3))


def test_memory_bounds_the_others():
  # 2.4e9 bytes at 80 % of 1e9 bytes/s.
  np.testing.assert_allclose(_seconds(flops=1e9, io_bytes=2.4e9), 3 + 1e-3)


@pytest.mark.parametrize('op_type, output_bytes, seconds', [
    ('ResourceScatterAdd', 8e8, 4),
    ('UnsortedSegmentSum', 8e8, 1 + .8),
    ('TensorScatterAdd', 4e8, 1 + .8),
    ('TensorScatterAdd', 1e9, 1 / .8),
    ('StridedSliceGrad', 8e8, 1 / .8),
])
def test_scatters_clear_or_copy_outputs_at_the_rate_of_copies(
    op_type, output_bytes, seconds):
  """A copy of a table was as slow as random access."""
  graph = graphs.make_graph([(0, 1, int(output_bytes))],
                            op_types=[op_type, 'NoOp'], io_bytes=[1e9, 0])
  cpu_s, *gpus_s = roofline.Roofline().op_seconds(graph,
                                                  clusters.make_cluster())[0]
  # A quarter of 1e9 bytes/s for the rest, and four fifths for the streams.
  np.testing.assert_allclose(gpus_s, seconds + 1e-3 + 3e-6)
  assert cpu_s == pytest.approx(4 + 1e-3)


def test_every_kernel_is_launched():
  np.testing.assert_allclose(_seconds(), 1e-3)


@pytest.mark.parametrize(
    'op_type,cpu_s,gpu_s',
    [
        # 1e9 FLOP at a share of 5e8 FLOP/s; further kernels take 3 us each, and
        # a dense one 4 us to fill.
        ('MatMul', 2, 2 + 4e-6),
        ('_FusedMatMul', 2, 2 + 4e-6),
        ('BatchMatMulV2', 2 / .7, 2 / .6 + 4e-6),
        ('Conv2D', 5, 2.5 + 4e-6 + 9e-6),
        ('Conv2DBackpropInput', 2 / .35, 2 / .65 + 4e-6 + 12e-6),
        ('CudnnRNNV3', 4, 4 + 15e-6),
        ('StatefulPartitionedCall', 2.5, 2.5),
        ('Cholesky', 2 / .15, 40 + 27e-6),
        ('DepthwiseConv2dNative', 10, 20),
        ('DepthwiseConv2dNativeBackpropFilter', 10, 20),
        ('Sum', 8, 8 + 3e-6),
        ('Relu', 8, 8)
    ])
def test_arithmetic_by_family(op_type, cpu_s, gpu_s):
  np.testing.assert_allclose(_seconds(op_type, flops=1e9),
                             np.add([cpu_s, gpu_s, gpu_s], 1e-3))


@pytest.mark.parametrize(
    'op_type,cpu_s,gpu_s',
    [
        # 1e9 bytes at a share of 1e9 bytes/s; further kernels take 3 us each.
        ('AddV2', 1.25, 1.25),
        ('ConcatV2', 1.25, 1.25),
        ('ResourceApplyAdam', 1.25, 1.25),
        ('Conv2D', 1.25, 1 / .27 + 9e-6),
        ('Transpose', 1 / .3, 1 / .7),
        ('GatherV2', 1 / .3, 1 / .3),
        ('UnsortedSegmentSum', 4, 4 + 3e-6),
        ('Mean', 2.5, 1 / .6 + 3e-6),
        ('FusedBatchNormV3', 2.5, 2 + 6e-6),
        ('SparseSoftmaxCrossEntropyWithLogits', 2.5, 2 + 6e-6),
        ('TopKV2', 20, 20 + 21e-6)
    ])
def test_traffic_by_family(op_type, cpu_s, gpu_s):
  np.testing.assert_allclose(_seconds(op_type, io_bytes=1e9),
                             np.add([cpu_s, gpu_s, gpu_s], 1e-3))


def test_shares_are_shares():
  for family in op_families.FAMILIES.values():
    for kind in 'CPU', 'GPU':
      assert all(0 < share <= 1 for share in family.shares(kind))
    assert family.kernels >= 1


@hypothesis.settings(deadline=None)
@hypothesis.given(st.sampled_from(_TYPES), *[st.floats(0, 1e15)] * 4)
def test_more_work_never_takes_less(op_type, flops, io_bytes, more_flops,
                                    more_bytes):
  less = _seconds(op_type, flops=flops, io_bytes=io_bytes)
  more = _seconds(op_type, flops=flops + more_flops,
                  io_bytes=io_bytes + more_bytes)
  assert (more >= less).all() and (less >= 1e-3).all()


@pytest.mark.parametrize('op_type', ['Identity', 'ReadVariableOp', 'Const'])
def test_ops_without_a_kernel_are_only_visited(op_type):
  seconds = _seconds(op_type, flops=1e12, io_bytes=1e12)
  np.testing.assert_allclose(seconds, 5e-7)
  assert roofline.family(op_type) == roofline.VISIT


def test_ops_of_the_hosts_memory_launch_nothing_on_gpus():
  """Each cost a dispatch and a kernel; a loop of an LSTM has dozens of them."""
  cluster = presets.preset('1xP100')
  graph = graphs.make_graph(num_ops=2, op_types=['AddV2'] * 2, io_bytes=12.)
  graph = graph.replace(host_ops=frozenset(graph.names[:1]))
  seconds = roofline.Roofline().op_seconds(graph, cluster)
  assert seconds[0, 1] == 0 < seconds[1, 1]
  assert seconds[0, 0] == seconds[1, 0] > 0


def test_large_ops_of_the_hosts_memory_take_the_time_of_the_host():
  """They took no time at all if they were on a GPU."""
  graph = graphs.make_graph(num_ops=1, op_types=['AddV2'], io_bytes=2e8)
  graph = graph.replace(host_ops=frozenset(graph.names))
  cpu, gpu = roofline.Roofline().op_seconds(graph, presets.preset('1xP100'))[0]
  assert gpu == cpu > 1e-3


def test_visit_time_can_be_chosen():
  graph = graphs.make_graph(num_ops=2, op_types=['NoOp', 'MatMul'])
  seconds = roofline.Roofline(visit_s=0.25).op_seconds(graph,
                                                       clusters.make_cluster())
  np.testing.assert_allclose(seconds[:, 0], [0.25, 1e-3])


def test_ops_in_loops_and_dead_branches():
  graph = graphs.make_graph(num_ops=3, op_types=['MatMul', 'MatMul', 'Switch'])
  graph = graph.replace(executions=[10, 0, 4])
  seconds = roofline.Roofline().op_seconds(graph, clusters.make_cluster())
  np.testing.assert_allclose(seconds[:, 1], [1e-2, 0, 2e-6])


def test_each_device_has_its_own_figures():
  cluster = presets.preset('2xP100')
  graph = graphs.make_graph(num_ops=1, flops=1e12)
  seconds = roofline.Roofline().op_seconds(graph, cluster)[0]
  for device, found in zip(cluster.devices, seconds):
    fill_s = 4e-6 if device.type == 'GPU' else 0
    assert found == pytest.approx(1e12 / device.peak_flops / device.efficiency
                                  + device.launch_s + fill_s)


def test_the_rate_depends_on_the_type_of_the_elements():
  """Mixed precision was as slow as float32, and float64 as fast."""
  cluster = presets.preset('1xV100')
  graph = graphs.make_graph(num_ops=4, op_types=['MatMul'] * 3 + ['AddV2'],
                            flops=1e13)
  graph = graph.replace(element_types_by_name=dict(
      zip(graph.names[1:], ('float16', 'float64', 'float16'))))
  seconds = roofline.Roofline().op_seconds(graph, cluster)[:, 1]
  np.testing.assert_allclose(seconds[1:] / seconds[0], [1 / 8, 2, 4], rtol=1e-3)


@pytest.mark.parametrize('name, element_type, most', [
    ('B200', 'float64', 37e12 * device_figures.CARDS['B200'].efficiency * .8),
    ('B200', 'float32', 70e12),
    ('MI300X', 'float16', 140e12),
])
def test_the_limit_of_convolutions_is_that_of_their_type(
    name, element_type, most):
  """The rate was limited first, and then multiplied by the type's factor."""
  graph = graphs.make_graph(num_ops=1, op_types=['Conv2D'], flops=1e16)
  graph = graph.replace(element_types_by_name={graph.names[0]: element_type})
  seconds = roofline.Roofline().op_seconds(graph, presets.preset(f'1x{name}'))
  assert 1e16 / seconds[0, 1] == pytest.approx(most, rel=1e-3)


def test_time_steps_launch_their_kernels_one_after_the_other():
  """Layers of examples, and no time steps: five times of what was measured."""
  graph = graphs.make_graph(num_ops=2, op_types=['CudnnRNNV3', 'CudnnRNNV3'])
  graph = graph.replace(rounds_by_name={graph.names[1]: 48.}, executions=[1, 2])
  model = roofline.Roofline()
  seconds = model.op_seconds(graph, clusters.make_cluster())
  np.testing.assert_allclose(
      seconds[:, 1], [1e-3 + 5 * 3e-6, 2 * (1e-3 + (6 * 48 - 1) * 3e-6)])
  np.testing.assert_allclose(seconds[:, 0], [1e-3, 2e-3])
  assert model.launches(graph).tolist() == [6, 2 * 6 * 48]


def test_each_op_in_a_call_starts_on_its_own():
  """On a CPU, a loop that stayed one op took the time of one start."""
  graph = graphs.make_graph(num_ops=2, op_types=['While', 'While'])
  graph = graph.replace(rounds_by_name={graph.names[1]: 48.})
  cluster = presets.preset('1xP100')
  once, often = roofline.Roofline().op_seconds(graph, cluster)
  starts = [d.launch_s if d.type == 'CPU' else 3e-6 for d in cluster.devices]
  np.testing.assert_allclose(often - once, np.multiply(47, starts))


def test_the_host_dispatches_each_op_of_a_call():
  graph = graphs.make_graph(num_ops=2, op_types=['While', 'MatMul'])
  graph = graph.replace(rounds_by_name=dict.fromkeys(graph.names, 50.))
  alone = graph.replace(rounds_by_name={})
  more = roofline.Roofline().host_work(graph) - roofline.Roofline().host_work(
      alone)
  assert more.tolist() == [49, 0]


def test_the_host_works_more_for_cudnn_than_for_others():
  graph = graphs.make_graph(num_ops=3, op_types=['Relu', 'Conv2D', 'Relu'])
  graph = graph.replace(executions=[1, 1, 5])
  few, many, often = roofline.Roofline().host_work(graph)
  assert 0 < few < many and often == 5 * few


def test_no_card_is_faster_than_its_kernels_can_be():
  """Little's law, and instructions of the card before."""
  newest = max(device_figures.CARDS.values(),
               key=lambda card: card.bandwidth_bytes_per_s)
  cluster = presets.preset(f'1x{newest.name}')
  gpu = cluster.devices[cluster.accelerators[0]]
  graph = graphs.make_graph(num_ops=2, op_types=['AddV2', 'Conv2D'],
                            io_bytes=[2.2e12, 0], flops=[0, 7e13])
  seconds = roofline.Roofline().op_seconds(graph, cluster)
  assert seconds[:, cluster.accelerators[0]] == pytest.approx(1, rel=1e-4)
  old = presets.preset('1xP100')
  assert roofline.Roofline().op_seconds(
      graph, old)[0,
                  old.accelerators[0]] == pytest.approx(2.2e12 / .8 / 732e9,
                                                        rel=1e-4)
  assert gpu.bandwidth_bytes_per_s > 2.2e12


def test_shape_of_an_empty_graph():
  graph = graphs.make_graph(num_ops=0)
  cluster = clusters.make_cluster()
  model = roofline.Roofline()
  assert model.op_seconds(graph, cluster).shape == (0, 3)
  assert model.workspace_bytes(graph, cluster).shape == (0, 3)


# A convolution of 2 images of 8 x 8 x 3 with 5 filters of 3 x 3 x 3 ('SAME').
_X, _W, _Y = 2 * 8 * 8 * 3 * 4, 3 * 3 * 3 * 5 * 4, 2 * 8 * 8 * 5 * 4


def _convolution(kind, inputs, output):
  edges = [(i, 3, size) for i, size in enumerate(inputs)]
  return graphs.make_graph([*edges, (3, 4, output)], 5,
                           op_types=['Relu'] * 3 + [kind, 'Relu'])


@pytest.mark.parametrize('kind,inputs,output',
                         [('Conv2D', (_X, _W), _Y),
                          ('_FusedConv2D', (_X, _W, 20), _Y),
                          ('Conv2DBackpropInput', (16, _W, _Y), _X),
                          ('Conv2DBackpropFilter', (_X, 16, _Y), _W)])
def test_convolutions_copy_their_input_and_filter(kind, inputs, output):
  """They had cuDNN's scratch, which TensorFlow can do without."""
  graph = _convolution(kind, inputs, output)
  found = roofline.Roofline().workspace_bytes(graph, clusters.make_cluster())
  assert found.dtype == np.int64
  np.testing.assert_array_equal(found[3], [0, _X + _W, _X + _W])
  assert not np.delete(found, 3, 0).any()


def test_depthwise_convolutions_do_without_cudnn():
  graph = _convolution('DepthwiseConv2dNative', (_X, _W), _Y)
  found = roofline.Roofline().workspace_bytes(graph, clusters.make_cluster())
  assert not found.any()


def test_a_sort_needs_a_second_copy_on_gpus():
  graph = graphs.make_graph([(0, 1, 400)], op_types=['Relu', 'TopKV2'])
  found = roofline.Roofline().workspace_bytes(graph, clusters.make_cluster())
  np.testing.assert_array_equal(found, [[0, 0, 0], [0, 800, 800]])
