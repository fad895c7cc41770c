import pytest
import tensorflow as tf
from tensorflow.core.protobuf import meta_graph_pb2

from gdp_grappler import errors
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.sources import input_shapes
from helpers import graph_defs


def _placeholder(name, shape):
  node = graph_defs.node(name, 'Placeholder', dtype=graph_defs.FLOAT)
  node.attr['shape'].shape.CopyFrom(tf.TensorShape(shape).as_proto())
  return node


def test_a_ragged_argument_has_the_size_of_its_values():
  """Once the size of a batch was assumed."""
  ids = tf.RaggedTensor.from_row_lengths(tf.zeros([96], tf.int32), [90, 6])
  sparse = tf.sparse.from_dense(tf.eye(5))
  arguments = [ids, sparse, tf.ones([4, 8]), tf.TensorSpec([None])]
  function = tf.function(lambda *given: given)
  concrete = function.get_concrete_function(*arguments)
  graph_def = concrete.graph.as_graph_def()
  input_shapes.take(graph_def, concrete, arguments)
  shapes = [
      tf.TensorShape(node.attr['shape'].shape).as_list()
      for node in graph_def.node if node.op == 'Placeholder'
  ]
  assert shapes == [[96], [3], [5, 2], [5], [2], [4, 8], [None]]


def _given(*said, **inputs):
  """Shapes of the placeholders of a signature, and what was told."""
  graph_def = graph_defs.graph_def(
      *[_placeholder(f'serve_{key}', shape) for key, shape in inputs.items()],
      _placeholder('other_x', None))
  signature = meta_graph_pb2.SignatureDef()
  for key in inputs:
    signature.inputs[key].name = f'serve_{key}:0'
  lines = []
  input_shapes.give(graph_def, 'serve', signature, 'model', 16, said,
                    lines.append)
  shapes = [tf.TensorShape(n.attr['shape'].shape) for n in graph_def.node]
  return [s.as_list() for s in shapes[:-1]], lines


def test_batches_are_filled_in_and_the_signature_is_told():
  shapes, lines = _given(x=(None, 8), y=())
  assert shapes == [[16, 8], []]
  assert lines == ['model: signature "serve" is taken, with x [16, 8], y []']


@pytest.mark.parametrize('shape, lines', [
    ((None, 8), [
        'a.pb: unknown dimensions of inputs taken as 5; batch_size '
        'sets the size'
    ]),
    ((4, 8), []),
])
def test_dimensions_that_a_graph_leaves_open_are_told(shape, lines):
  """32 was taken without a word."""
  told = []
  source = source_graph.SourceGraph(
      'a', graph_defs.graph_def(_placeholder('x', shape)), ('x',), ())
  input_shapes.tell_assumed(source, 'a.pb', 5, told.append)
  assert told == lines


def test_what_a_user_says_counts():
  assert _given(('x', (4, 224, 3)), x=(None, None, 3))[0] == [[4, 224, 3]]
  assert _given(('x', (4, 2)), x=None)[0] == [[4, 2]]


def test_shape_that_an_export_left_out_is_not_a_scalar():
  """It is the default of the attribute: any shape."""
  node = graph_defs.node('serve_x', 'Placeholder', dtype=graph_defs.FLOAT)
  signature = meta_graph_pb2.SignatureDef()
  signature.inputs['x'].name = 'serve_x:0'
  with pytest.raises(errors.InvalidGraphError, match='number of dimensions'):
    input_shapes.give(graph_defs.graph_def(node), 'serve', signature, 'model',
                      16, (), print)


def test_a_sparse_input_takes_no_shape():
  """The shape was ignored without a word."""
  signature = meta_graph_pb2.SignatureDef()
  signature.inputs['x'].coo_sparse.values_tensor_name = 'serve_x:0'
  graph_def = graph_defs.graph_def(_placeholder('serve_x', (None,)))
  with pytest.raises(errors.InvalidGraphError, match='"x" .* is sparse'):
    input_shapes.give(graph_def, 'serve', signature, 'model', 16,
                      (('x', (4, 5)),), print)


@pytest.mark.parametrize('said, shape, part', [
    ((), None, 'input "x" of signature "serve" has a shape without a known '
     'number of dimensions. Give one, such as shape={\'x\': (16, 8)}.'),
    ((('x', (4, 5)),), (None, 8), 'has the shape [?, 8], which [4, 5] does'),
    ((('x', (4,)),), (None, 8), 'which [4] does not fit'),
    ((('z', (4,)),), (None, 8), 'has no input "z". It has x.'),
])
def test_errors_name_input_and_signature(said, shape, part):
  with pytest.raises(errors.InvalidGraphError) as caught:
    _given(*said, x=shape)
  assert part in str(caught.value) and str(caught.value).startswith('model: ')
