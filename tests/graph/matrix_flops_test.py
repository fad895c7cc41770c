"""Arithmetic of matrices, Fourier transforms and what is like products."""

import math

import pytest
import tensorflow as tf

from gdp_grappler.graph import node_table
from gdp_grappler.graph import op_properties
from helpers import graph_defs

# Two matrices of 6 by 6, of 6 by 4, and right sides of 3 columns.
_N, _M, _K = 6, 4, 3
_FFT = 5 * math.log2(8)


def _flops(make, name='found'):
  definition = graph_defs.built(make)
  found = op_properties.estimate(node_table.NodeTable('test', definition), 32)
  return found.flops[[node.name for node in definition.node].index(name)]


def _square(dtype=tf.float32):
  return tf.zeros([2, _N, _N], dtype)


@pytest.mark.parametrize('make, flops', [
    (lambda: tf.raw_ops.Cholesky(input=_square(), name='found'), 2 * _N**3 / 3),
    (lambda: tf.raw_ops.MatrixInverse(input=_square(), name='found'),
     2 * 2 * _N**3),
    (lambda: tf.raw_ops.Lu(input=_square(), name='found'), 2 * 2 * _N**3 / 3),
    (lambda: tf.raw_ops.SelfAdjointEigV2(input=_square(), compute_v=True, name=
                                         'found'), 2 * 9 * _N**3),
    (lambda: tf.raw_ops.SelfAdjointEigV2(input=_square(), compute_v=False, name=
                                         'found'), 2 * 4 * _N**3 / 3),
    (lambda: tf.raw_ops.MatrixTriangularSolve(matrix=_square(), rhs=tf.zeros(
        [2, _N, _K]), name='found'), 2 * _N * _N * _K),
    (lambda: tf.raw_ops.MatrixSolve(matrix=_square(), rhs=tf.zeros(
        [2, _N, _K]), name='found'), 2 * (2 * _N**3 / 3 + 2 * _N * _N * _K)),
    (lambda: tf.raw_ops.MatrixSolveLs(matrix=tf.zeros(
        [2, _N, _M]), rhs=tf.zeros([2, _N, _K]), l2_regularizer=tf.zeros([
        ], tf.float64), name='found'), 2 *
     (2 * _N * _M * _M + 4 * _N * _M * _K)),
    (lambda: tf.raw_ops.Qr(input=tf.zeros([2, _N, _M]), name='found'),
     2 * 4 * _M * _M * (_N - _M / 3)),
    (lambda: tf.raw_ops.Svd(input=tf.zeros([2, _M, _N]), compute_uv=False, name=
                            'found'), 2 * 4 * _M * _M * (_N - _M / 3)),
    (lambda: tf.raw_ops.Svd(input=tf.zeros([2, _M, _N]), name='found'), 2 *
     (14 * _N * _M * _M + 8 * _M**3)),
])
def test_linear_algebra(make, flops):
  """It once cost no arithmetic."""
  assert _flops(make) == pytest.approx(flops)


@pytest.mark.parametrize('make, flops', [
    (lambda: tf.raw_ops.FFT(input=tf.zeros([3, 8], tf.complex64), name='found'),
     3 * 8 * _FFT),
    (lambda: tf.raw_ops.IFFT2D(input=tf.zeros([3, 8, 8], tf.complex64), name=
                               'found'), 3 * 64 * 2 * _FFT),
    (lambda: tf.raw_ops.RFFT(input=tf.zeros([3, 8]), fft_length=[8], name=
                             'found'), 3 * 8 * _FFT / 2),
    (lambda: tf.raw_ops.IRFFT(input=tf.zeros([3, 5], tf.complex64), fft_length=
                              [8], name='found'), 3 * 8 * _FFT / 2),
    (lambda: tf.raw_ops.FFTND(input=tf.zeros([3, 8, 8], tf.complex64),
                              fft_length=[8, 8], axes=[1, 2], name='found'),
     3 * 64 * 2 * _FFT),
    (lambda: tf.raw_ops.FFT(input=tf.zeros([3, 0], tf.complex64), name='found'),
     0),
])
def test_fourier_transforms(make, flops):
  assert _flops(make) == pytest.approx(flops)


def _bytes_of(*shape):
  return tf.zeros(shape, tf.quint8)


def _range(kind):
  return {f'min_{kind}': 0., f'max_{kind}': 1.}


@pytest.mark.parametrize('make, flops', [
    (lambda: tf.raw_ops.QuantizedConv2D(
        input=_bytes_of(2, 8, 8, 3), filter=_bytes_of(
            3, 3, 3, 5), strides=[1, 2, 2, 1], padding='SAME', name='found',
        **_range('input'), **_range('filter')), 2 * 2 * 4 * 4 * 5 * 27),
    (lambda: tf.raw_ops.QuantizedDepthwiseConv2D(
        input=_bytes_of(2, 8, 8, 3), filter=_bytes_of(3, 3, 3, 2), strides=
        [1, 1, 1, 1], padding='SAME', name='found', **_range('input'),
        **_range('filter')), 2 * 2 * 8 * 8 * 6 * 9),
    (lambda: tf.raw_ops.QuantizedMatMulWithBias(
        a=_bytes_of(4, 6), b=tf.zeros([6, 5], tf.qint8), bias=tf.zeros([5]),
        min_a=0., max_a=1., min_b=0., max_b=1., name='found'), 2 * 4 * 6 * 5),
    (lambda: tf.raw_ops.FusedPadConv2D(input=tf.zeros(
        [2, 8, 8, 3]), paddings=tf.zeros([4, 2], tf.int32), filter=tf.zeros(
            [3, 3, 3, 5]), mode='REFLECT', strides=[1, 1, 1, 1], padding='SAME',
                                       name='found'), 2 * 2 * 8 * 8 * 5 * 27),
    (lambda: tf.raw_ops.SparseTensorDenseMatMul(
        a_indices=tf.zeros([7, 2], tf.int64), a_values=tf.zeros([7]), a_shape=
        [4, 6], b=tf.zeros([6, 5]), name='found'), 2 * 7 * 5),
])
def test_what_is_like_products_and_convolutions(make, flops):
  assert _flops(make) == pytest.approx(flops)


def test_one_matrix_for_many_sides():
  assert _flops(lambda: tf.raw_ops.MatrixTriangularSolve(
      matrix=tf.zeros([_N, _N]), rhs=tf.zeros([100, _N, _K]), name='found')
               ) == 100 * _N * _N * _K


def test_complex_numbers_take_four_times_as_much():
  assert _flops(lambda: tf.raw_ops.Cholesky(input=_square(tf.complex64), name=
                                            'found')) == 4 * 2 * _N**3 / 3


@pytest.mark.parametrize('dtype', [tf.complex64, tf.complex128])
@pytest.mark.parametrize('make', [
    lambda x: tf.raw_ops.MatMul(a=x[0], b=x[0], name='found'),
    lambda x: tf.raw_ops.BatchMatMulV2(x=x, y=x, name='found'),
    lambda x: tf.raw_ops.BatchMatMulV3(x=x, y=x, Tout=x.dtype, name='found'),
    lambda x: tf.raw_ops.Einsum(inputs=[x, x], equation='bij,bjk->bik', name=
                                'found'),
    lambda x: tf.raw_ops.Einsum(inputs=[x, x], equation='...ij,...jk->...ik',
                                name='found'),
    lambda x: tf.raw_ops.SparseTensorDenseMatMul(
        a_indices=tf.zeros([7, 2], tf.int64), a_values=tf.zeros([7], x.dtype),
        a_shape=[_N, _N], b=x[0], name='found'),
])
def test_complex_products_take_four_times_as_much(make, dtype):
  """They cost as much as products of real numbers."""
  real = _flops(lambda: make(_square()))
  assert _flops(lambda: make(_square(dtype))) == 4 * real > 0


@pytest.mark.parametrize('make, flops', [
    (lambda: tf.raw_ops.RFFT(input=tf.zeros([3, 2]), fft_length=[8], name=
                             'found'), 3 * 8 * _FFT / 2),
    (lambda: tf.raw_ops.RFFT(input=tf.zeros([3, 99]), fft_length=[8], name=
                             'found'), 3 * 8 * _FFT / 2),
    (lambda: tf.raw_ops.RFFT2D(input=tf.zeros([3, 5, 2]), fft_length=[8, 8],
                               name='found'), 3 * 64 * 2 * _FFT / 2),
    (lambda: tf.raw_ops.RFFTND(input=tf.zeros([3, 5, 2]), fft_length=[8, 8],
                               axes=[1, 2], name='found'),
     3 * 64 * 2 * _FFT / 2),
])
def test_a_transform_pads_or_cuts_its_input(make, flops):
  """A transform of 2 numbers, padded to 8, cost a twelfth."""
  assert _flops(make) == pytest.approx(flops)


def test_rows_of_a_tridiagonal_matrix_come_one_after_the_other():
  """Right sides alone were counted."""
  assert _flops(lambda: tf.raw_ops.TridiagonalSolve(
      diagonals=tf.zeros([2, 3, _N]), rhs=tf.zeros([2, _N, _K]), name='found')
               ) == pytest.approx(2 * _N * (60 + _K))


def test_a_transform_of_unknown_length_is_as_long_as_its_input():
  assert _flops(lambda: tf.raw_ops.RFFT(
      input=tf.zeros([3, 8]), fft_length=tf.compat.v1.placeholder(
          tf.int32, [1]), name='found')) == pytest.approx(3 * 8 * _FFT / 2)


def test_matrices_of_unknown_size():
  """As large as a batch where nobody knows, as all open sizes are."""

  def make():
    unknown = tf.compat.v1.placeholder(tf.float32, [None, _N, _N])
    tf.raw_ops.Cholesky(input=unknown, name='found')
    open_rank = tf.compat.v1.placeholder(tf.float32, None)
    tf.raw_ops.Qr(input=open_rank, name='open')

  assert _flops(make) == pytest.approx(32 * _N**3 / 3)
  assert _flops(make, 'open') == 0
