import numpy as np
import pytest
import tensorflow as tf

from helpers import graph_defs


@pytest.mark.parametrize('name,size', [('float16', 2), ('bfloat16', 2),
                                       ('float64', 8), ('float32', 4)])
def test_products_know_the_type_of_their_elements(name, size):

  def make():
    x = tf.compat.v1.placeholder(name, [2, 3, 3])
    tf.linalg.matmul(x, x, name='batch')
    tf.raw_ops.MatMul(a=x[0], b=x[0], name='one')
    tf.raw_ops.SparseMatMul(a=tf.zeros([3, 3]), b=tf.zeros([3, 3]))

  graph = graph_defs.read(make)
  ops = [graph.names.index(op) for op in ('batch', 'one')]
  assert graph.element_types[ops].tolist() == [name] * 2
  assert graph.element_bytes[ops].tolist() == [size] * 2
  others = graph.element_types[graph.names.index('SparseMatMul')]
  assert others == 'float32'


def test_complex_products_compute_with_their_parts():
  """Products of two doubles each were as fast as products of float32."""

  def make():
    for name in ('complex128', 'complex64'):
      x = tf.compat.v1.placeholder(name, [3, 3])
      tf.raw_ops.MatMul(a=x, b=x, name=name)

  graph = graph_defs.read(make)
  ops = [graph.names.index(name) for name in ('complex128', 'complex64')]
  assert graph.element_types[ops].tolist() == ['float64', 'float32']


def test_calls_have_the_type_of_most_of_their_arithmetic():

  @tf.function(jit_compile=True, autograph=False)
  def compiled(x):
    for _ in range(3):
      x = x @ x
    return tf.cast(x, tf.float32) + 1.

  def make():
    compiled(tf.compat.v1.placeholder(tf.float16, [8, 8]))
    compiled(tf.compat.v1.placeholder(tf.float32, [8, 8]))

  graph = graph_defs.read(make)
  calls = [i for i, t in enumerate(graph.op_types) if 'PartitionedCall' in t]
  assert graph.element_types[calls].tolist() == ['float16', 'float32']


def test_graphs_of_float32_keep_no_types():

  def make():
    tf.zeros([2, 2]) + tf.cast(tf.zeros([2], tf.int32), tf.float32)

  graph = graph_defs.read(make)
  assert not graph.element_types_by_name
  assert set(graph.element_types) == {'float32'}
  np.testing.assert_array_equal(graph.element_bytes, 4)
