import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler.graph import node_table
from gdp_grappler.graph import op_properties
from gdp_grappler.graph.control_flow import lost_shapes
from helpers import graph_defs

raw = tf.raw_ops


def _table(make):
  return node_table.NodeTable('test', graph_defs.built(make))


def _loop_with_gradient():
  """The optimized step of a loop that multiplies by a variable [3, 3]."""
  weight = tf.Variable(tf.eye(3))

  @tf.function(input_signature=[tf.TensorSpec([None, 3])])
  def step(x):
    with tf.GradientTape() as tape:
      for _ in tf.range(4):
        x = tf.tanh(x @ weight)
      loss = tf.reduce_sum(x**2)
    weight.assign_sub(0.1 * tape.gradient(loss, weight))

  return node_table.NodeTable(
      'loop', graph_defs.optimized(lambda: step(tf.ones([2, 3]))))


def test_a_gradient_of_a_loop_knows_the_shapes_that_it_pops():
  """The products of the backward pass cost the cube of the batch."""
  table = _loop_with_gradient()
  properties = op_properties.estimate(table, unknown_dim=50)
  products = [i for i, node in enumerate(table.nodes) if node.op == 'MatMul']
  assert len(products) == 3  # One in the loop, two in that of the gradient.
  assert properties.flops[products].tolist() == [2 * 50 * 3 * 3] * 3


def test_a_gradient_begins_with_zeros_of_the_size_of_a_variable():
  """The sums of gradients of weights had as many rows as a batch."""
  table = _loop_with_gradient()
  properties = op_properties.estimate(table, unknown_dim=50)
  shapes = [
      i for i, node in enumerate(table.nodes) if node.op == 'VariableShape'
  ]
  fills = {target for source, _, target in table.edges if source in shapes}
  assert {properties.shape(op, 0) for op in fills} == {(3, 3)}


def _pop(handle, dtype=tf.float32):
  raw.TensorListPopBack(input_handle=handle, element_shape=-1,
                        element_dtype=dtype, name='pop')


def _empty(shape, dtype=tf.float32):
  return raw.EmptyTensorList(element_shape=shape, max_num_elements=-1,
                             element_dtype=dtype)


@pytest.mark.parametrize('make', [
    lambda: _empty([3, 4]),
    lambda: raw.TensorListReserve(element_shape=[3, 4], num_elements=7,
                                  element_dtype=tf.float32),
    lambda: raw.TensorListFromTensor(tensor=tf.zeros([7, 3, 4]), element_shape=
                                     [3, 4]),
])
def test_every_maker_of_a_list_tells(make):
  table = _table(lambda: _pop(make()))
  properties = op_properties.estimate(table, 50)
  assert properties.shape(table.names.index('pop'), 1) == (3, 4)


def test_the_nodes_of_the_graph_stay_as_they_are():
  table = _table(lambda: _pop(_empty([3, 4])))
  before = [node.SerializeToString() for node in table.nodes]
  assert list(lost_shapes.substitutes(table)) == [table.names.index('pop')]
  assert [node.SerializeToString() for node in table.nodes] == before


@pytest.mark.parametrize('make', [
    lambda: _pop(_empty(-1)),
    lambda: _pop(tf.compat.v1.placeholder(tf.variant, [])),
    lambda: raw.VariableShape(input=raw.VarHandleOp(dtype=tf.float32, shape=
                                                    [None, 3])),
])
def test_what_no_op_tells_stays_unknown(make):
  assert not lost_shapes.substitutes(_table(make))


def test_an_element_that_is_a_list_has_other_elements():

  def make():
    lists = _empty(tf.constant([], tf.int32), tf.variant)
    _, inner = raw.TensorListPopBack(input_handle=lists, element_shape=-1,
                                     element_dtype=tf.variant, name='outer')
    _pop(inner)

  table = _table(make)
  assert list(lost_shapes.substitutes(table)) == [table.names.index('outer')]


@pytest.mark.parametrize('shape', [(), (5,), (2, 0, 3)])
@pytest.mark.parametrize('dtype', [tf.int32, tf.int64])
def test_the_shape_of_a_variable_is_a_constant(shape, dtype):
  table = _table(lambda: raw.VariableShape(
      input=raw.VarHandleOp(dtype=tf.float32, shape=shape), out_type=dtype))
  (node,) = lost_shapes.substitutes(table).values()
  value = tf.make_ndarray(node.attr['value'].tensor)
  assert value.tolist() == list(shape)
  assert value.dtype == np.dtype(dtype.as_numpy_dtype)


def _table_of_words():
  return raw.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64)


def _found(default, make_table=_table_of_words):
  return raw.LookupTableFindV2(
      table_handle=make_table(),
      keys=tf.compat.v1.placeholder(tf.string, [None, 128]),
      default_value=default, name='found')


def test_what_a_table_contains_has_the_shape_of_the_keys():
  """After a lookup all shapes were unknown, and products cost no FLOPs."""

  def make():
    x = tf.gather(tf.ones([1000, 512]), _found(tf.constant(-1, tf.int64)))
    raw.Einsum(inputs=[x, tf.ones([512, 64])], equation='btd,df->btf',
               name='product')

  table = _table(make)
  properties = op_properties.estimate(table, unknown_dim=32)
  product = table.names.index('product')
  assert properties.shape(product, 0) == (32, 128, 64)
  assert properties.flops[product] == 2 * 32 * 128 * 512 * 64
  found = table.names.index('found')
  size = properties.output_bytes[properties.output_starts[found]]
  assert size == 32 * 128 * 8  # Numbers of eight bytes, not words.


def test_what_is_looked_up_has_not_the_values_of_the_keys():
  """Shape inference took constant keys for what the table contains."""

  def make():
    words = raw.HashTableV2(key_dtype=tf.int64, value_dtype=tf.int64)
    found = raw.LookupTableFindV2(table_handle=words,
                                  keys=tf.constant([7, 8], tf.int64),
                                  default_value=tf.constant(-1, tf.int64))
    tf.fill(found, 1., name='filled')

  table = _table(make)
  properties = op_properties.estimate(table, unknown_dim=5)
  assert properties.shape(table.names.index('filled'), 0) != (7, 8)


def test_a_function_with_a_table_outside_knows_what_it_looks_up():
  """Tables of Keras layers are arguments of the train function."""
  words = tf.lookup.StaticHashTable(
      tf.lookup.KeyValueTensorInitializer(['a', 'b'], [1., 2.]), 0.)
  lookup = tf.function(words.lookup)
  table = node_table.NodeTable(
      'lookup', graph_defs.optimized(lambda: lookup(tf.constant(['a'] * 7))))
  (op,) = (i for i, n in enumerate(table.nodes) if n.op == 'LookupTableFindV2')
  assert op_properties.estimate(table, unknown_dim=50).shape(op, 0) == (7,)


@pytest.mark.parametrize('make', [
    lambda: _found(tf.zeros([5], tf.int64)),
    lambda: _found(tf.compat.v1.placeholder(tf.int64, None)),
    lambda: _found(
        tf.constant(-1, tf.int64), lambda: raw.MutableDenseHashTableV2(
            empty_key=['', ''], deleted_key=['', 'x'], value_dtype=tf.int64)),
], ids=['vectors', 'unknown', 'keys_are_vectors'])
def test_a_table_of_tensors_has_other_shapes_than_its_keys(make):
  assert not lost_shapes.substitutes(_table(make))


@pytest.mark.parametrize('dtype', [tf.int32, tf.int64])
def test_a_gradient_of_a_transpose_knows_its_shape(dtype):
  """Products of attention had as many heads as the batch has rows."""

  def make():
    x = tf.compat.v1.placeholder(tf.float32, [None, 256, 8, 64])
    order = tf.constant([1, 3, 0, 2], dtype)
    raw.Transpose(x=raw.Transpose(x=x, perm=order),
                  perm=raw.InvertPermutation(x=order), name='back')

  table = _table(make)
  properties = op_properties.estimate(table, unknown_dim=50)
  assert properties.shape(table.names.index('back'), 0) == (50, 256, 8, 64)


@pytest.mark.parametrize('order', [
    lambda: tf.constant([0, 2, 2]), lambda: tf.constant([1, 2, 3]),
    lambda: tf.compat.v1.placeholder(tf.int32, [3])
], ids=['repeated', 'too_large', 'unknown'])
def test_what_is_no_known_permutation_has_no_inverse(order):
  assert not lost_shapes.substitutes(
      _table(lambda: raw.InvertPermutation(x=order())))


def test_a_permutation_of_a_wrong_type_is_left_to_tensorflow():
  """The conversion of the inverse failed, and with it the whole pass."""
  definition = graph_defs.built(
      lambda: raw.InvertPermutation(x=tf.constant([1, 0])))
  (node,) = (n for n in definition.node if n.op == 'InvertPermutation')
  node.attr['T'].type = tf.float32.as_datatype_enum
  assert not lost_shapes.substitutes(node_table.NodeTable('test', definition))
