import pytest
import tensorflow as tf
from tensorflow.core.framework import step_stats_pb2

from gdp_grappler.evaluation.calibrating import traces

_GPU = '/job:localhost/replica:0/task:0/device:GPU:0'


def test_kernels_of_a_node_on_all_streams_of_a_device():
  """Only nanoseconds were read, but records of kernels have microseconds."""
  stats = step_stats_pb2.StepStats()
  stream = '/device:GPU:0/stream'
  for device, name, micros in ((f'{stream}:all', 'a:MatMul',
                                3), (f'{stream}:all', 'a:Split',
                                     1), (f'{stream}:all', 'b:Relu', 0),
                               (f'{stream}:13', 'a:MatMul', 3), (_GPU, 'a', 9)):
    row = next((d for d in stats.dev_stats if d.device == device), None)
    row = row if row is not None else stats.dev_stats.add(device=device)
    row.node_stats.add(node_name=name, op_end_rel_micros=micros,
                       all_end_rel_micros=micros)
  found = traces.of_streams(stats, '/device:GPU:0')
  # A kernel takes half a microsecond more on average, as times are cut off.
  assert found == {'a': pytest.approx(5e-6), 'b': pytest.approx(5e-7)}


def test_a_cpu_tells_nothing_of_streams():
  with tf.Graph().as_default():
    target = tf.tanh(tf.ones([3])).op
    with tf.compat.v1.Session() as session:
      assert not traces.kernel_seconds(session, [target], '/device:CPU:0')
