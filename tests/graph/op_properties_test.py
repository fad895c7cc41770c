import functools

import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler import errors
from gdp_grappler.graph import node_table
from gdp_grappler.graph import op_properties
from helpers import graph_defs


def _estimated(definition, unknown_dim):
  return op_properties.estimate(node_table.NodeTable('test', definition),
                                unknown_dim)


def _estimate(make, unknown_dim=32):
  definition = graph_defs.built(make)
  result = _estimated(definition, unknown_dim)
  return {node.name: i for i, node in enumerate(definition.node)}, result


def test_matmul():

  def make():
    a = tf.compat.v1.placeholder(tf.float32, [None, 10], 'a')
    tf.matmul(a, tf.zeros([10, 5]), name='product')

  index, result = _estimate(make, unknown_dim=7)
  product = index['product']
  assert result.flops[product] == 2 * 7 * 10 * 5
  assert result.io_bytes[product] == 4 * (7 * 10 + 10 * 5 + 7 * 5)
  assert result.output_bytes[result.output_starts[product]] == 4 * 7 * 5
  assert result.output_bytes[result.output_starts[index['a']]] == 4 * 7 * 10


def _zeros(*shape):
  return tf.zeros(shape)


def _flops(make, name='found'):
  index, result = _estimate(make)
  return result.flops[index[name]]


@pytest.mark.parametrize('op_type, fused, shapes, attributes', [
    ('MatMul', '_FusedMatMul',
     ([4, 6], [5, 6]), {'transpose_a': False, 'transpose_b': True}),
    ('Conv2D', '_FusedConv2D', ([2, 8, 8, 3], [3, 3, 3, 5]),
     {'strides': [1, 2, 2, 1], 'padding': 'SAME'}),
    ('Conv2D', '_FusedConv2D', ([2, 8, 8, 5], [3, 3, 1, 5]),
     {'strides': [1, 2, 2, 1], 'padding': 'SAME'}),
    ('DepthwiseConv2dNative', '_FusedDepthwiseConv2dNative',
     ([2, 8, 8, 3], [3, 3, 3, 2
                    ]), {'strides': [1, 1, 1, 1], 'padding': 'VALID'}),
    ('BatchMatMulV2', '_MklFusedBatchMatMulV2',
     ([7, 4, 6], [7, 6, 5]), {'adj_x': False, 'adj_y': False}),
])
def test_fused_ops_compute_what_they_were_made_of(op_type, fused, shapes,
                                                  attributes):
  """The remapper's products and convolutions once cost no arithmetic."""
  a, b = map(tf.TensorShape, shapes)

  def make():
    left = tf.compat.v1.placeholder(tf.float32, a, 'left')
    right = tf.compat.v1.placeholder(tf.float32, b, 'right')
    tf.compat.v1.placeholder(tf.float32, [5], 'bias')
    arguments = dict(zip(_ARGUMENTS[op_type], (left, right)))
    getattr(tf.raw_ops, op_type)(**arguments, **attributes, name='plain')

  definition = graph_defs.built(make)
  plain = next(n for n in definition.node if n.name == 'plain')
  node = definition.node.add(name='fused', op=fused,
                             input=[*plain.input, 'bias'])
  for name, value in plain.attr.items():
    node.attr[name].CopyFrom(value)
  node.attr['num_args'].i = 1
  node.attr['TArgs'].list.type.append(1)
  node.attr['fused_ops'].list.s.append(b'BiasAdd')
  result = _estimated(definition, 1)
  one, other = result.flops[-2:]
  assert one == other > 0
  assert result.io_bytes[-1] == result.io_bytes[-2] + 4 * 5


_ARGUMENTS = {
    'MatMul': 'ab', 'Conv2D': ('input', 'filter'),
    'DepthwiseConv2dNative': ('input', 'filter'), 'BatchMatMulV2': 'xy'
}


@pytest.mark.parametrize(
    'op_type, version, image, filters, out, how, flops',
    [
        # In 2 x 2 x 2 x 4 windows, 27 x 3 numbers meet 5 channels.
        ('Conv3D', 'V2', (2, 4, 4, 8, 3), (3, 3, 3, 3, 5),
         (2, 2, 2, 4, 5), {'strides': [1, 2, 2, 2, 1], 'padding': 'SAME'}, 2 *
         (2 * 2 * 2 * 4) * 27 * 3 * 5),
        # The estimator ignored dilations: 16 windows of an image in place of 4.
        ('Conv2D', '', (2, 6, 6, 3), (3, 3, 3, 5), (2, 2, 2, 5), {
            'strides': [1] * 4, 'dilations': [1, 2, 2, 1], 'padding': 'VALID'
        }, 2 * (2 * 2 * 2) * 9 * 3 * 5),
        # Each of many groups of one channel counted as a whole filter.
        *(('Conv2D', '', (2, 8, 8, 6), (3, 3, per_group, 12),
           (2, 4, 4, 12), {'strides': [1, 2, 2, 1], 'padding': 'SAME'}, 2 *
           (2 * 4 * 4) * 9 * per_group * 12) for per_group in (1, 2, 6)),
    ])
def test_convolutions_and_their_gradients(op_type, version, image, filters, out,
                                          how, flops):
  forward, of_input, of_filter = (functools.partial(
      getattr(tf.raw_ops, f'{op_type}{ending}'), **how, name='found')
                                  for ending in ('', f'BackpropInput{version}',
                                                 f'BackpropFilter{version}'))
  assert flops == _flops(
      lambda: forward(input=_zeros(*image), filter=_zeros(*filters)))
  assert flops == _flops(lambda: of_input(input_sizes=image, filter=_zeros(
      *filters), out_backprop=_zeros(*out)))
  assert flops == _flops(lambda: of_filter(input=_zeros(*image), filter_sizes=
                                           filters, out_backprop=_zeros(*out)))


def test_recurrent_kernels_use_each_weight_once_per_step_and_example():
  raw, weights = tf.raw_ops, 1000

  def cudnn():
    raw.CudnnRNNV2(input=_zeros(9, 4, 5), input_h=_zeros(1, 4, 7),
                   input_c=_zeros(1, 4,
                                  7), params=_zeros(weights), name='found')

  assert _flops(cudnn) == 2 * 9 * 4 * weights

  def block():
    gate = _zeros(7)
    raw.BlockLSTMV2(seq_len_max=tf.constant(9, tf.int64), x=_zeros(9, 4, 5),
                    cs_prev=_zeros(4, 7), h_prev=_zeros(4, 7), w=_zeros(12, 28),
                    wci=gate, wcf=gate, wco=gate, b=_zeros(28), cell_clip=0.,
                    use_peephole=False, name='found')

  assert _flops(block) == 2 * 9 * 4 * 12 * 28

  def cell():
    raw.GRUBlockCell(x=_zeros(4, 5), h_prev=_zeros(4, 7), w_ru=_zeros(12, 14),
                     w_c=_zeros(12, 7), b_ru=_zeros(14), b_c=_zeros(7),
                     name='found')

  assert _flops(cell) == 2 * 4 * 12 * (14 + 7)


def test_cudnn_weights_of_unknown_number():
  """Of open sizes one was that of a batch."""

  def make():
    tf.raw_ops.CudnnRNNV2(input=_zeros(9, 4, 5), input_h=_zeros(2, 4, 7),
                          input_c=_zeros(2, 4, 7),
                          params=tf.compat.v1.placeholder(tf.float32,
                                                          [None]), name='found')

  assert _flops(make) == 2 * 9 * 4 * (2 * 4 * 7 * (5 + 7))


def _rows(make, unknown_dim=32):
  """First dimensions of the outputs of all ops, by name."""
  index, result = _estimate(make, unknown_dim)
  return {
      name: (result.shape(op, 0) or (None,))[0] for name, op in index.items()
  }


@pytest.mark.parametrize('tokens, unknown_dim', [(60, 7), (None, 60)])
def test_parts_of_a_tensor_share_its_rows(tokens, unknown_dim):
  """Each expert had as many rows as a batch, and so had their joint result."""

  def make():
    x = tf.compat.v1.placeholder(tf.float32, [tokens, 5])
    expert = tf.compat.v1.placeholder(tf.int32, [tokens])
    order = tf.range(tf.size(expert))
    parts = tf.dynamic_partition(x, expert, 4, name='parts')
    where = tf.dynamic_partition(tf.reshape(order, [tokens or -1]), expert, 4)
    parts = [tf.matmul(part, tf.ones([5, 3]), name='e') for part in parts]
    tf.dynamic_stitch(where, parts, name='joined')

  rows = _rows(make, unknown_dim)
  assert rows['parts'] == rows['e'] == rows['e_3'] == 15
  assert rows['joined'] == 60


def test_a_selection_has_at_most_all_rows():
  """A mask of many rows selected as many as a batch has."""

  def make():
    x = tf.zeros([500, 5])
    mask = tf.compat.v1.placeholder(tf.bool, [500])
    tf.identity(tf.boolean_mask(x, mask), name='masked')

  assert _rows(make)['masked'] == 500


def test_the_batch_stays_the_batch_if_parts_are_added_to_it():

  def make():
    x = tf.compat.v1.placeholder(tf.float32, [None, 5], 'x')
    expert = tf.compat.v1.placeholder(tf.int32, [9])
    order = tf.dynamic_partition(tf.range(9), expert, 4)
    parts = tf.dynamic_partition(tf.zeros([9, 5]), expert, 4)
    tf.add_n([x, tf.dynamic_stitch(order, parts)], name='sum')

  rows = _rows(make, unknown_dim=9)
  assert rows['x'] == rows['sum'] == 9


def test_filters_of_unknown_size_cost_no_arithmetic():
  """They were taken for as large as a batch in each dimension."""
  assert _flops(lambda: tf.raw_ops.Conv3DBackpropFilterV2(
      input=_zeros(2, 4, 4, 8, 3), filter_sizes=tf.compat.v1.placeholder(
          tf.int32, [5]), out_backprop=_zeros(2, 2, 2, 4, 5), strides=
      [1, 2, 2, 2, 1], padding='SAME', name='found')) == 0


def _damaged(op_type, **attributes):
  shapes = ([2, 8, 8, 3], [3, 3, 3, 5])
  nodes = [
      graph_defs.node(name, 'Placeholder', dtype=graph_defs.FLOAT,
                      shape={'shape': tf.TensorShape(shape).as_proto()})
      for name, shape in zip('ab', shapes)
  ]
  node = graph_defs.node('wrong', op_type, ['a', 'b'], T=graph_defs.FLOAT)
  for name, value in attributes.items():
    if isinstance(value, list):
      node.attr[name].list.i.extend(value)
    else:
      node.attr[name].s = value.encode()
  node.attr['N'].i = 2
  node.attr['num_args'].i = 0
  node.attr['TArgs'].list.SetInParent()
  return graph_defs.graph_def(*nodes, node)


@pytest.mark.parametrize('op_type', [
    'Conv2D', '_FusedConv2D', 'DepthwiseConv2dNative',
    '_FusedDepthwiseConv2dNative'
])
def test_strides_that_are_none_are_refused(op_type):
  """Grappler divided by them, and the process was gone."""
  definition = _damaged(op_type, strides=[1, 0, 0, 1], padding='SAME')
  with pytest.raises(errors.InvalidGraphError, match='stride that is not'):
    _estimated(definition, 1)


@pytest.mark.parametrize('equation', ['a->b', 'ab->,', '->,', '->a,b', 'ab,bc'])
def test_equations_that_do_not_fit_are_refused(equation):
  """Grappler looked at inputs that were not there."""
  with pytest.raises(errors.InvalidGraphError, match='equation for another'):
    _estimated(_damaged('Einsum', equation=equation), 1)


def test_products_of_two_types():
  assert _flops(lambda: tf.raw_ops.BatchMatMulV3(x=_zeros(3, 4, 6), y=_zeros(
      3, 6, 5), Tout=tf.float32, name='found')) == 3 * 2 * 4 * 6 * 5


@pytest.mark.parametrize('shape, data_format', [((2, 8, 8, 3), 'NHWC'),
                                                ((2, 3, 8, 1), 'NCHW'),
                                                ((2, 3, 8, 2), 'NCHW')])
def test_a_bias_is_added_once_to_each_output(shape, data_format):
  """With channels first, a bias was broadcast to the last dimension as well."""
  assert _flops(lambda: tf.raw_ops.BiasAdd(value=_zeros(*shape), bias=_zeros(
      3), data_format=data_format, name='found')) == np.prod(shape)


def test_a_logarithm_of_a_softmax_costs_as_much_as_a_softmax():
  """It cost no arithmetic."""
  one, other = (_flops(lambda op=op: op(logits=_zeros(4, 6), name='found'))
                for op in (tf.raw_ops.LogSoftmax, tf.raw_ops.Softmax))
  assert one == other > 0


@pytest.mark.parametrize('equation, left, right, products', [
    ('bfd,dhv->bfhv', (2, 3, 5), (5, 7, 11), 2 * 3 * 5 * 7 * 11),
    ('...d,dv->...v', (2, 3, 5), (5, 7), 2 * 3 * 5 * 7),
    ('d...,dv->v...', (5, 2, 3), (5, 7), 2 * 3 * 5 * 7),
    ('b...d,b...vd->b...v', (2, 9, 3, 5), (2, 1, 3, 7, 5), 2 * 9 * 3 * 5 * 7),
    ('...d,d->...', (5,), (5,), 5),
    ('...d,...dv->...v', (2, 1, 5), (1, 3, 5, 7), 2 * 3 * 5 * 7),
    ('...d,...d->...', (9, 1, 5), (1, 8, 5), 9 * 8 * 5),
])
def test_sums_by_labels(equation, left, right, products):
  """Sums with an ellipsis once cost no arithmetic."""
  assert _flops(lambda: tf.raw_ops.Einsum(
      inputs=[_zeros(*left), _zeros(*right)], equation=equation, name='found')
               ) == 2 * products


def test_several_outputs_and_none():

  def make():
    a, _ = tf.unstack(tf.zeros([2, 3]), name='two')
    tf.group(a, name='none')

  index, result = _estimate(make)
  counts = np.diff(result.output_starts)
  assert counts[index['two']] == 2 and counts[index['none']] == 0
  assert len(result.output_bytes) == result.output_starts[-1]


def test_handles_weigh_nothing():
  index, result = _estimate(lambda: tf.compat.v1.Variable(
      tf.zeros([9, 9]), use_resource=True, name='v'))
  assert result.output_bytes[result.output_starts[index['v']]] == 0
  read = index['v/Read/ReadVariableOp']
  assert result.output_bytes[result.output_starts[read]] == 4 * 81


def test_arguments_of_a_function_have_their_shape():
  shape = tf.TensorShape([None, 3]).as_proto()
  argument = graph_defs.node('x', '_Arg', T=graph_defs.FLOAT)
  argument.attr['_output_shapes'].list.shape.append(shape)
  handle = graph_defs.node('v', '_Arg', T={'type': 20})
  handle.attr['_handle_dtypes'].list.type.append(1)
  handle.attr['_handle_shapes'].list.shape.append(
      tf.TensorShape([3, 2]).as_proto())
  definition = graph_defs.graph_def(
      argument, handle,
      graph_defs.node('read', 'ReadVariableOp', ['v'], dtype=graph_defs.FLOAT),
      graph_defs.node('y', 'MatMul', ['x', 'read'], T=graph_defs.FLOAT,
                      transpose_a={'b': False}, transpose_b={'b': False}),
      graph_defs.node('r', '_Retval', ['y'], T=graph_defs.FLOAT))
  before = definition.SerializeToString(deterministic=True)
  result = _estimated(definition, 5)
  assert result.output_bytes[result.output_starts[3]] == 4 * 5 * 2
  assert definition.SerializeToString(deterministic=True) == before


def test_a_handle_that_tells_half_is_read():
  """Regression: a shape without a type was an IndexError."""
  handle = graph_defs.node('v', '_Arg', T={'type': 20})
  handle.attr['_handle_shapes'].list.shape.append(
      tf.TensorShape([3, 2]).as_proto())
  result = _estimated(graph_defs.graph_def(handle), 5)
  assert len(result.output_bytes) == 1


@pytest.mark.parametrize(
    'nodes, message',
    [
        ([('a', 'NoSuchOp', [])], "Op type not registered 'NoSuchOp'"),
        ([('a', 'NoOp', ['^b']),
          ('b', 'NoOp', ['^a'])], '"[ab]" waits for its'),
        # The ops around the cycle of 'b' and 'c' are not named.
        ([('e', 'NoOp', ['^d']), ('d', 'NoOp', ['^c']), ('c', 'NoOp', ['^b']),
          ('b', 'NoOp', ['^a', '^c']), ('a', 'NoOp', [])
         ], 'has a cycle that is no .*"[bc]" waits for its own'),
        ([('a', 'NoOp', []), ('b', 'MatMul', ['a', 'a'])
         ], 'shapes of graph ".*": .*"b" .MatMul. lacks the attribute "T"'),
    ])
def test_graphs_that_are_none(nodes, message):
  definition = graph_defs.graph_def(*(graph_defs.node(*n) for n in nodes))
  with pytest.raises(errors.InvalidGraphError, match=message):
    _estimated(definition, 32)


def test_empty_graph():
  result = _estimated(graph_defs.graph_def(), 32)
  assert result.output_starts.tolist() == [0] and result.flops.size == 0
