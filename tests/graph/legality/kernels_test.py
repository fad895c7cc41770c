import pytest
import tensorflow as tf
from tensorflow.python.framework import kernels as tf_kernels

from gdp_grappler.graph.legality import kernels
from helpers import graph_defs


def _types(op, dtype=None, **attributes):
  if dtype is not None:
    attributes['T'] = {'type': dtype.as_datatype_enum}
  return kernels.allowed_types(graph_defs.node('n', op, **attributes))


@pytest.mark.parametrize('op, dtype, cpu, gpu', [
    ('MatMul', tf.float32, True, True),
    ('MatMul', tf.int32, True, False),
    ('Add', tf.string, True, False),
    ('Identity', tf.int32, True, True),
    ('MatMul', tf.string, False, False),
    ('StringUpper', None, True, False),
])
def test_kernels_by_type(op, dtype, cpu, gpu):
  assert _types(op, dtype) == (cpu, gpu)


def test_default_kernels_serve_all_devices():
  registered = tf_kernels.get_registered_kernels_for_op('NoOp').kernel
  assert 'DEFAULT' in {k.device_type for k in registered}
  assert _types('NoOp') == (True, True)


def test_a_label_asks_for_another_kernel():
  assert _types('MatMul', tf.float32, _kernel=b'no such') == (False, False)


@pytest.mark.parametrize('op, dtype, expected', [
    ('FloorDiv', tf.int32, True),
    ('FloorDiv', tf.int64, False),
    ('AddV2', tf.float32, False),
    ('Unique', tf.int32, False),
    ('StringUpper', None, False),
])
def test_kernels_of_gpus_that_work_on_the_host(op, dtype, expected):
  """Unique has two kernels. That for all devices works on the host."""
  attributes = {} if dtype is None else {'T': {'type': dtype.as_datatype_enum}}
  node = graph_defs.node('n', op, **attributes)
  assert kernels.works_on_host(node) == expected


def test_left_out_attributes_choose_by_their_default():
  given = _types('ArgMax', tf.float32, output_type={'type': 9},
                 Tidx={'type': 3})
  assert _types('ArgMax', tf.float32) == given


def test_agrees_with_a_plain_search_for_ops_with_one_type():
  """The oracle asks TensorFlow for each op and looks at each kernel."""
  for op in ('Relu', 'Sum', 'Cumsum', 'Where', 'Range', 'Select', 'Sqrt',
             'RandomShuffle', 'StringUpper', 'FFT2D', 'Svd', 'Rank', 'Shape'):
    definition = kernels.op_def(op)
    names = [a.name for a in definition.attr if a.type == 'type']
    for dtype in (tf.float32, tf.float16, tf.int32, tf.string, tf.bool):
      attributes = {n: {'type': dtype.as_datatype_enum} for n in names}
      expected = tuple(
          any(k.device_type in (device, 'DEFAULT') and not k.label and all(
              dtype.as_datatype_enum in c.allowed_values.list.type
              for c in k.constraint)
              for k in tf_kernels.get_registered_kernels_for_op(op).kernel)
          for device in ('CPU', 'GPU'))
      assert _types(op, **attributes) == expected, (op, dtype)


def test_calls_by_name_can_be_on_every_device():
  """A call of a function by its name was always on the CPU."""
  assert kernels.op_def('__inference_layer_3') is None
  assert _types('__inference_layer_3') == (True, True)


@pytest.mark.parametrize('op, stateful', [('MatMul', False),
                                          ('VarHandleOp', True),
                                          ('RandomUniform', True),
                                          ('SomebodysOwn', True)])
def test_state(op, stateful):
  assert kernels.is_stateful(op) == stateful
