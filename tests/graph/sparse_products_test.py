import pytest
import tensorflow as tf

from gdp_grappler.evaluation.costs import op_families
from helpers import graph_defs

_NUMBERS = 7  # Of a matrix of 5 x 4.


def _work(make):
  """FLOPs and bytes of the product."""
  read = graph_defs.read(lambda: make(tf.raw_ops))
  op = read.op_types.index('SparseMatrixMatMul')
  return read.flops[op], read.io_bytes[op]


def _matrix(raw, dtype):
  return raw.SparseTensorToCSRSparseMatrix(
      indices=tf.zeros([_NUMBERS, 2], tf.int64),
      values=tf.zeros([_NUMBERS], dtype), dense_shape=tf.constant([5, 4],
                                                                  tf.int64))


@pytest.mark.parametrize('dtype, size, flops', [('float32', 4, 2),
                                                ('complex64', 8, 8)])
def test_each_number_meets_a_row(dtype, size, flops):
  """A product of a graph network had no FLOPs, and the bytes of its output."""

  def make(raw):
    raw.SparseMatrixMatMul(a=_matrix(raw, dtype), b=tf.zeros([4, 3], dtype))

  # Numbers with their columns, and rows of three.
  moved = _NUMBERS * (size + 4) + _NUMBERS * 3 * size
  assert _work(make) == (flops * _NUMBERS * 3, moved)


def test_other_ops_between_keep_the_numbers():

  def make(raw):
    matrix = raw.SparseMatrixTranspose(input=_matrix(raw, 'float32'),
                                       type=tf.float32)
    raw.SparseMatrixMatMul(a=matrix, b=tf.zeros([3, 5]), transpose_b=True)

  assert _work(make)[0] == 2 * _NUMBERS * 3


def test_matrices_from_dense_ones():

  def make(raw):
    matrix = raw.DenseToCSRSparseMatrix(
        dense_input=tf.zeros([5, 4]), indices=tf.zeros([_NUMBERS, 2], tf.int64))
    raw.SparseMatrixMatMul(a=matrix, b=tf.zeros([4, 3]))

  assert _work(make)[0] == 2 * _NUMBERS * 3


def test_a_matrix_whose_numbers_are_unknown():
  """Sums of matrices may have numbers at the places of both."""

  def make(raw):
    one = tf.constant(1.)
    total = raw.SparseMatrixAdd(a=_matrix(raw, 'float32'),
                                b=_matrix(raw, 'float32'), alpha=one, beta=one)
    raw.SparseMatrixMatMul(a=total, b=tf.zeros([4, 3]))

  assert _work(make)[0] == 0


def test_such_a_product_is_a_product():
  assert op_families.family('SparseMatrixMatMul').name == 'matmul'
