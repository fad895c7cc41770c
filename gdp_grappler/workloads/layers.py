"""Layers of the convolutional networks and of Transformer-XL.

All layers are v1 graph code on resource variables, so that a model is the graph
that TensorFlow would have run when the papers were written. A step has further
parts than gradients (moving averages of batch norm, weight decay). Layers add
these to collections of the graph, which `optimizers.TrainingStep` and
`total_loss` use.
"""

from __future__ import annotations

import math
from typing import Any, Sequence

import tensorflow as tf

tf1 = tf.compat.v1
# Collection of the moving averages of batch norm.
STATISTICS = 'batch_norm_statistics'


def stage(number: int) -> Any:
  """Returns a scope for ops and variables of a stage; reusable."""
  return tf1.variable_scope(f'stage{number}', reuse=tf1.AUTO_REUSE)


def weights(name: str, shape: Sequence[int], initializer: Any = None,
            trainable: bool = True) -> tf.Variable:
  """Returns a variable in the current scope."""
  return tf1.get_variable(name, shape, tf.float32, initializer,
                          trainable=trainable, use_resource=True)


def decay(variable: tf.Variable, rate: float) -> None:
  """Adds `rate * |variable|^2 / 2` to the losses that `total_loss` sums."""
  with tf.name_scope('decay'):
    tf1.add_to_collection(tf1.GraphKeys.REGULARIZATION_LOSSES,
                          rate * tf.nn.l2_loss(variable))


def total_loss(losses: Sequence[tf.Tensor]) -> tf.Tensor:
  """Returns the sum of the losses and of all weight decay."""
  return tf.add_n(
      [*losses, *tf1.get_collection(tf1.GraphKeys.REGULARIZATION_LOSSES)],
      name='loss')


def dense(x: tf.Tensor, name: str, width: int, bias: bool = True,
          rate: float = 0.) -> tf.Tensor:
  """Returns the product with a matrix: [..., in] -> [..., width].

  Args:
    x: Tensor of rank 1 or more.
    name: Scope of the layer.
    width: Number of outputs.
    bias: Whether to add a bias.
    rate: Rate of weight decay.
  """
  with tf1.variable_scope(name):
    kernel = weights('kernel', [x.shape[-1], width], _scaled)
    if rate:
      decay(kernel, rate)
    y = x if x.shape.rank == 2 else tf.reshape(x, [-1, x.shape[-1]])
    y = tf.matmul(y, kernel)
    if bias:
      y = tf.nn.bias_add(y, weights('bias', [width], tf1.zeros_initializer()))
    return y if x.shape.rank == 2 else tf.reshape(y, [*x.shape[:-1], width])


def convolution(x: tf.Tensor, name: str, size: Sequence[int], channels: int,
                stride: int = 1, padding: str = 'SAME',
                rate: float = 0.) -> tf.Tensor:
  """Convolves without bias: [B, H, W, in] -> [B, H', W', channels]."""
  with tf1.variable_scope(name):
    kernel = weights('kernel', [*size, x.shape[-1], channels], _scaled)
    if rate:
      decay(kernel, rate)
    return tf.nn.conv2d(x, kernel, stride, padding)


def batch_norm(x: tf.Tensor, name: str, momentum: float = .997,
               epsilon: float = 1e-3, fused: bool = False,
               debias: bool = False) -> tf.Tensor:
  """Normalizes [B, H, W, C] over all but the last axis, and keeps averages.

  Ioffe and Szegedy, arXiv 1502.03167, algorithm 1.

  Args:
    x: [B, H, W, C], input.
    name: Scope of the layer.
    momentum: Momentum of the moving averages of mean and variance.
    epsilon: Number that is added to the variance.
    fused: Whether to use one kernel, not one per arithmetic operation.
    debias: Whether to correct the averages for their start at 0.
  """
  width = x.shape[-1:]
  with tf1.variable_scope(name):
    offset = weights('offset', width, tf1.zeros_initializer())
    factor = weights('factor', width, tf1.ones_initializer())
    if fused:
      y, mean, variance = tf1.nn.fused_batch_norm(x, factor, offset,
                                                  epsilon=epsilon)
    else:
      mean, variance = tf.nn.moments(x, [0, 1, 2])
      y = tf.nn.batch_normalization(x, mean, variance, offset, factor, epsilon)
    _keep('mean', mean, 0., momentum, debias)
    _keep('variance', variance, 1., momentum, debias)
    return y


def _keep(name: str, value: tf.Tensor, start: float, momentum: float,
          debias: bool) -> None:
  """Adds a moving average of a statistic, updated with the weights."""
  with tf.name_scope(f'{name}_average'):
    average = weights(f'moving_{name}', value.shape,
                      tf1.constant_initializer(start), False)
    tf1.add_to_collection(STATISTICS, average)
    update = (_debiased if debias else _update)(average, value, momentum)
    tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, update)


def _update(average: tf.Variable, value: tf.Tensor,
            momentum: float) -> tf.Operation:
  return average.assign_sub((average - value) * (1. - momentum)).op


def _debiased(average: tf.Variable, value: tf.Tensor,
              momentum: float) -> tf.Operation:
  """Updates an average, corrected for its start; Kingma and Ba, section 3."""
  name = average.op.name.rsplit('/', 1)[-1]
  biased = weights(f'{name}_biased', value.shape, tf1.zeros_initializer(),
                   False)
  steps = weights(f'{name}_steps', [], tf1.zeros_initializer(), False)
  with tf.control_dependencies(
      [_update(biased, value, momentum),
       steps.assign_add(1.).op]):
    correction = 1. - tf.pow(momentum, steps.read_value())
    return average.assign(biased.read_value() / correction).op


def layer_norm(x: tf.Tensor, name: str, epsilon: float = 1e-6) -> tf.Tensor:
  """Normalizes [..., C] over the last axis; Ba et al., arXiv 1607.06450."""
  with tf1.variable_scope(name):
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return tf.nn.batch_normalization(
        x, mean, variance,
        weights('offset', x.shape[-1:], tf1.zeros_initializer()),
        weights('factor', x.shape[-1:], tf1.ones_initializer()), epsilon)


def dropout(x: tf.Tensor, rate: float) -> tf.Tensor:
  """Zeroes a share of the elements at random and scales up the others."""
  return tf.nn.dropout(x, rate) if rate else x


def cross_entropy(logits: tf.Tensor, labels: tf.Tensor,
                  smoothing: float = 0.) -> tf.Tensor:
  """Returns the mean of -log p of the labels.

  Args:
    logits: [..., C], logits of C classes.
    labels: int [...], labels.
    smoothing: Share of the target that is spread over all classes (arXiv
      1512.00567, section 7).
  """
  if not smoothing:
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels,
                                                       logits=logits))
  classes = logits.shape[-1]
  targets = tf.one_hot(labels, classes) * (1. - smoothing) + smoothing / classes
  return tf.reduce_mean(
      tf.nn.softmax_cross_entropy_with_logits(labels=tf.stop_gradient(targets),
                                              logits=logits))


def images(batch: int, size: int) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns placeholders of images float [B, S, S, 3] and labels int [B]."""
  return (tf1.placeholder(tf.float32, [batch, size, size, 3],
                          'images'), tf1.placeholder(tf.int32, [batch],
                                                     'labels'))


def _scaled(shape: Sequence[int], dtype: tf.DType) -> tf.Tensor:
  """Draws normal values with which rectified outputs keep their variance."""
  fan_in = math.prod(shape[:-1])
  return tf.random.truncated_normal(shape, stddev=math.sqrt(2. / fan_in),
                                    dtype=dtype)
