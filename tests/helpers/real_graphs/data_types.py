"""Types and layouts of all kinds."""

from __future__ import annotations

import tensorflow as tf

from helpers.real_graphs import base


@base.function
def types_of_all_kinds():

  @tf.function
  def step(x=base.x(4, 4)):
    i = tf.cast(x * 4.0, tf.int32)
    long = tf.cast(i, tf.int64)
    small = tf.cast(i, tf.int8)
    half, brain = tf.cast(x, tf.float16), tf.cast(x, tf.bfloat16)
    double = tf.cast(x, tf.float64)
    wave = tf.complex(x, -x)
    return (i * 2 + 1, i @ i, tf.reduce_sum(i, 0), tf.bitwise.bitwise_xor(i, 3),
            long // 2, tf.cumsum(long), small + small, tf.argmax(x, 1) + 1,
            half @ half, tf.cast(brain @ brain, tf.float32), double / 3.0,
            tf.linalg.inv(double + 9 * tf.eye(4, dtype=tf.float64)),
            tf.abs(tf.signal.fft2d(wave)), tf.math.real(wave @ wave),
            tf.logical_or(x > 0.0, i > 0), tf.reduce_any(x > 0.0, 1),
            tf.unique(tf.reshape(i, [-1]))[0] + 1, tf.where(x > 0.0),
            tf.cast(tf.cast(i, tf.uint8), tf.int32) + 1,
            tf.bitcast(i, tf.float32), tf.cast(tf.sort(i), tf.bool))

  return step


@base.function
def shapes_and_sizes():

  @tf.function(input_signature=[
      tf.TensorSpec([None, None], tf.float32),
      tf.TensorSpec(None, tf.float32)
  ])
  def step(x, y):
    rows, n = tf.shape(x)[0], tf.size(x) + tf.rank(x)
    z = tf.reshape(x, [tf.shape(x)[1], rows]) @ x
    if tf.rank(y) == 1:
      y = tf.expand_dims(y, 0)
    return (z, n * 2, tf.fill([rows, 2], 1.0) * 2.0, tf.range(n) + rows,
            tf.pad(x, [[0, rows], [0, 0]]), tf.tile(y, [rows, 1]) * 2.0,
            tf.split(x, [1, -1], 0)[1] + 1.0, tf.broadcast_to(y, [rows, 3]),
            tf.slice(x, [0, 0], [rows - 1, -1]) * 2.0,
            tf.boolean_mask(x, x > 0.0) * 2.0, x[::-1, rows - 3:] + 1.0,
            tf.transpose(x,
                         tf.range(tf.rank(x))[::-1]) * 2.0)

  return lambda: step(base.x(4, 4), base.x(3))


@base.function
def ragged_and_sparse():

  @tf.function
  def step(x=base.x(3, 3)):
    ragged = tf.RaggedTensor.from_row_lengths(x[:, 0] * 2.0, [1, 0, 2])
    dense = tf.reduce_sum(tf.cast(ragged.to_tensor(), tf.float32), 1)
    sparse = tf.sparse.from_dense(tf.nn.relu(x))
    segments = tf.math.segment_sum(x, [0, 0, 1])
    return (dense, ragged.row_lengths() + 1,
            tf.sparse.sparse_dense_matmul(sparse, x),
            tf.sparse.reduce_sum(sparse, 0) * 2.0,
            tf.sparse.to_dense(tf.sparse.add(sparse, sparse)), segments * 2.0,
            tf.math.unsorted_segment_max(x, [1, 0, 1], 2))

  return step


@base.function
def ragged_variants():

  @tf.function
  def step(x=base.x(3, 3)):
    ragged = tf.RaggedTensor.from_row_lengths(x[:, 0], [1, 0, 2])
    mapped = tf.map_fn(lambda row: tf.reduce_sum(row) * 2.0, ragged,
                       fn_output_signature=tf.float32)
    total = 0.0
    for i in tf.range(3):
      total += tf.reduce_sum(ragged[i])
    return mapped, total

  return step


@base.function
def sparse_matrices():
  from tensorflow.python.ops.linalg.sparse import sparse_csr_matrix_ops as csr

  @tf.function
  def step(x=base.x(3, 3)):
    a = csr.dense_to_csr_sparse_matrix(x, tf.where(x > 0.0))
    b = csr.sparse_matrix_transpose(a, tf.float32)
    c = csr.sparse_matrix_sparse_mat_mul(a, b, tf.float32)
    return (csr.csr_sparse_matrix_to_dense(c, tf.float32) * 2.0,
            csr.sparse_matrix_mat_mul(a, x) + 1.0, csr.sparse_matrix_nnz(c) + 1)

  return step


@base.function
def quantized():

  @tf.function
  def step(x=base.x(4, 4)):
    q = tf.quantization.quantize(x, -1.0, 1.0, tf.qint8)
    u = tf.quantization.quantize(x, -1.0, 1.0, tf.quint8)
    product = tf.raw_ops.QuantizedMatMul(a=u.output, b=u.output, min_a=-1.0,
                                         max_a=1.0, min_b=-1.0, max_b=1.0,
                                         Toutput=tf.qint32)
    back = tf.quantization.dequantize(q.output, q.output_min, q.output_max)
    fake = tf.quantization.fake_quant_with_min_max_vars(x, -1.0, 1.0)
    return (back @ x,
            tf.quantization.dequantize(product.out, product.min_out,
                                       product.max_out, 'MIN_FIRST'),
            fake + 1.0, tf.quantization.quantize_and_dequantize_v2(x, -1., 1.))

  return step


@base.function
def linear_algebra():

  @tf.function
  def step(x=base.x(4, 4)):
    spd = x @ tf.transpose(x) + 5.0 * tf.eye(4)
    with tf.GradientTape() as tape:
      tape.watch(x)
      y = tf.linalg.logdet(x @ tf.transpose(x) + 5.0 * tf.eye(4))
    return (tf.linalg.cholesky(spd) * 2.0, tf.linalg.eigvalsh(spd) + 1.0,
            tf.linalg.svd(x, compute_uv=False), tf.linalg.det(spd) * 2.0,
            tf.linalg.solve(spd, x), tf.einsum('ij,kj->ik', x, x),
            tf.linalg.band_part(x, 1, 0) + 1.0, tf.linalg.expm(x * 0.1),
            tape.gradient(y, x), tf.nn.top_k(x, 2)[0] * 2.0)

  return step


@base.function
def losses_of_sequences():

  @tf.function
  def step(x=base.x(5, 2, 4)):
    with tf.GradientTape() as tape:
      tape.watch(x)
      labels = tf.constant([[1, 2], [2, 1]])
      a = tf.nn.ctc_loss(labels, x, [2, 2], [5, 5], blank_index=0)
      b = tf.nn.sparse_softmax_cross_entropy_with_logits(
          tf.constant([1, 0]), x[0])
      decoded = tf.nn.ctc_greedy_decoder(x, [5, 5])[0][0]
      sampled = tf.nn.log_poisson_loss(x[0], x[1])
      loss = tf.reduce_sum(a) + tf.reduce_sum(b) + tf.reduce_sum(sampled)
    return loss, tape.gradient(loss, x), tf.sparse.to_dense(decoded) + 1

  return step
