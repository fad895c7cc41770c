"""What is made of traces and clocks; `profiler_test` has real ones."""

import types

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import step_stats_pb2

from gdp_grappler import deadlines
from gdp_grappler.evaluation.profiling import profiling_worker
from gdp_grappler.evaluation.profiling import single_ops
from helpers import graph_defs

_CPU, _GPU = graph_defs.CPU(0), graph_defs.GPU(0)


def _setup(cores=(0,), target='', on_gpu=False):
  return types.SimpleNamespace(cores=cores, target=target, on_gpu=on_gpu)


def _traced(*records):
  """Of (device, node, start, end, temporary bytes), in nanoseconds.

  Records of a stream have no nanoseconds, and microseconds rounded down.
  """
  stats = step_stats_pb2.StepStats()
  for device, name, start, end, temporary in records:
    node = stats.dev_stats.add(device=device).node_stats.add(
        node_name=name, op_end_rel_micros=end // 1000)
    if 'stream' not in device:
      node.op_start_rel_nanos, node.op_end_rel_nanos = start, end
    node.memory_stats.temp_memory_size = temporary
  owners = {'a': 'a', 'a/copy': 'a', 'b': 'b'}
  return stats, owners, {'a': 0, 'b': 1}


def test_what_belongs_to_an_op_is_added_up_and_its_own_runs_counted():
  stats, owners, index = _traced(
      (_CPU, 'a', 0, 1000, 5), (_CPU, 'a', 0, 2000, 9),
      (_CPU, 'a/copy:Identity', 0, 4000, 0), (_CPU, 'nobody', 0, 9000, 0),
      (_GPU, 'b', 0, 9000, 0))
  found = profiling_worker._summed(stats, _CPU, owners, index)
  assert found == {0: (pytest.approx(7e-6), 2, 9)}


def test_on_a_gpu_kernels_count_and_not_their_launches():
  """All kernels of a real trace took 0 s: their nanoseconds are not set."""
  stream = '/device:GPU:0/stream:all'
  stats, owners, index = _traced(
      (_GPU, 'a', 0, 1000, 0), (_GPU, 'b', 0, 1000, 0),
      (stream, 'a:MatMul', 0, 5300, 0), (stream, 'b:MatMul', 0, 500, 0))
  found = profiling_worker._summed(stats, _GPU, owners, index)
  assert [found[op][0] for op in (0, 1)
         ] == [pytest.approx(5.5e-6),
               pytest.approx(5e-7)]


def test_temporary_memory_is_what_is_no_output():
  node = step_stats_pb2.NodeExecStats()
  node.memory.add(peak_bytes=100)
  output = node.output.add().tensor_description
  output.allocation_description.requested_bytes = 30
  assert profiling_worker._temporary_bytes(node) == 70
  node.memory_stats.temp_memory_size = 80
  assert profiling_worker._temporary_bytes(node) == 80


def test_medians_over_steps_and_the_most_memory():
  steps = [{0: (1., 2, 5)}, {0: (3., 2, 9), 1: (1., 1, 0)}, {0: (2., 4, 7)}]
  seconds, executions, temporary = profiling_worker._medians(steps, 2)
  np.testing.assert_array_equal(seconds, [2, 0])
  np.testing.assert_array_equal(executions, [2, 0])
  np.testing.assert_array_equal(temporary, [9, 0])


_QUIET, _DISTURBED = (1., 1.), (9., 3.)


@pytest.mark.parametrize(
    'clocked, setup, median',
    [
        ([_QUIET] * 5 + [_DISTURBED] * 6, _setup(), 1.),
        # Hardly any was quiet: what it worked.
        ([_QUIET] * 4 + [_DISTURBED] * 7, _setup(), 3.),
        # Nobody can tell on several cores, or elsewhere.
        ([_QUIET] * 5 + [_DISTURBED] * 6, _setup(cores=(0, 1)), 9.),
        ([_QUIET] * 5 + [_DISTURBED] * 6, _setup(target='grpc://x'), 9.),
        # The process waits for the GPU.
        ([_QUIET] * 5 + [_DISTURBED] * 6, _setup(on_gpu=True), 9.),
    ])
def test_steps_that_others_disturbed_do_not_count(clocked, setup, median):
  assert profiling_worker._median_s(clocked, setup) == median


def test_the_share_that_others_had():
  clocked = [_QUIET, _DISTURBED]
  assert profiling_worker._disturbed(clocked, _setup()) == pytest.approx(.6)
  assert profiling_worker._disturbed(clocked, _setup(cores=())) == 0
  assert profiling_worker._disturbed(clocked, _setup(on_gpu=True)) == 0
  assert profiling_worker._disturbed([(1., 1.1)], _setup()) == 0


def _chained(graph, *targets):
  runnable = types.SimpleNamespace(targets=targets)
  found = profiling_worker._one_by_one(graph, runnable)
  return {node.name: list(node.input) for node in found.node}


def test_one_order_of_what_a_step_needs():
  node = graph_defs.node
  inputs = _chained(
      graph_defs.graph_def(node('a', 'Const'), node('b', 'Const'),
                           node('c', 'AddV2', ['a', 'b:0']),
                           node('aside', 'Const'), node('d', 'NoOp', ['^c'])),
      'd')
  # One of the two constants waits for the other; the rest waited already.
  assert inputs.pop('aside') == []
  assert sorted(map(tuple,
                    (inputs['a'], inputs['b']))) in ([(), ('^a',)], [(),
                                                                     ('^b',)])
  assert inputs['c'] == ['a', 'b:0'] and inputs['d'] == ['^c']


def test_a_condition_is_left_as_it_is():
  node = graph_defs.node
  inputs = _chained(
      graph_defs.graph_def(node('a', 'Const'), node('b', 'Const'),
                           node('m', 'Merge', ['a', 'b'])), 'm')
  assert inputs['a'] == inputs['b'] == []


def test_an_op_without_a_time_is_no_op_of_zero_seconds(monkeypatch):
  """Ops for which no time was left once counted as measured to take 0 s."""
  with tf.Graph().as_default() as graph, tf.device(_GPU):
    x = tf.raw_ops.Placeholder(dtype=tf.float32, shape=[3], name='x')
    flat = tf.raw_ops.Reshape(tensor=x, shape=[3], name='flat')
    tf.raw_ops.Tanh(x=flat, name='timed')
    tf.raw_ops.Sin(x=flat, name='untimed')
  monkeypatch.setattr(single_ops, 'seconds', lambda *_: {'timed': 2.})
  names = ('flat', 'untimed', 'timed', 'of_the_host')
  setup = types.SimpleNamespace(op_names=names, device=_GPU, target='',
                                devices=(_GPU, _GPU, _GPU, _CPU))
  seconds, untimed = profiling_worker._one_by_one_s(
      types.SimpleNamespace(graph=graph), setup, np.array([1, 1, 3, 1]),
      deadlines.NEVER)
  assert seconds.tolist() == [0, 0, 6, 0] and untimed == (1,)


def test_a_gpu_of_a_server_needs_a_trace():
  """Its ops were once timed in a session of this process, which lacks it."""
  setup = types.SimpleNamespace(target='grpc://there:1')
  with pytest.raises(ValueError, match='grpc://there:1 has no kernels'):
    profiling_worker._one_by_one_s(None, setup, np.ones(0), deadlines.NEVER)
