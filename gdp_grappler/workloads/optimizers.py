"""Optimizers of the workloads, and other parts of an update.

TensorFlow has RMSProp and Adam as one fused op per weight. Optimizers written
in Python, such as those of Keras 3, have one op per arithmetic operation, and
so have those of this module. Each workload says which kind it uses.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from gdp_grappler.workloads import layers

# From (gradient, variable) pairs to such pairs.
Clip = Callable[[list[tuple[Any, tf.Variable]]], list[tuple[Any, tf.Variable]]]


class TrainingStep(tf1.train.Optimizer):
  """An optimizer with other parts of an update.

  Gradients are dense and may be clipped. Updates of layers (`UPDATE_OPS`) run
  with the updates of weights. Every weight and statistic of batch norm may have
  a moving average, as in Szegedy et al., arXiv 1512.00567, section 8.
  """

  def __init__(self, inner: tf1.train.Optimizer, clip: Clip | None = None,
               average_decay: float | None = None) -> None:
    """Initializes a TrainingStep.

    Args:
      inner: Optimizer that applies the gradients.
      clip: Function that clips the gradients before; None for no limit.
      average_decay: Decay of the moving averages; None for no averages.
    """
    super().__init__(use_locking=False, name='step')
    self._inner = inner
    self._clip = clip
    self._average_decay = average_decay

  def compute_gradients(self, *args: tf.Tensor,
                        **kwargs: Any) -> list[tuple[Any, tf.Variable]]:
    """Returns the gradients of the inner optimizer."""
    return self._inner.compute_gradients(*args, **kwargs)

  def apply_gradients(self, grads_and_vars: Sequence[tuple[Any, tf.Variable]],
                      global_step: Any = None,
                      name: str | None = None) -> tf.Operation:
    """Returns an op that clips, applies and averages."""
    pairs = [(_dense(g, v), v) for g, v in grads_and_vars if g is not None]
    if self._clip is not None:
      pairs = self._clip(pairs)
    applied = self._inner.apply_gradients(pairs, global_step)
    updates = tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)
    averages = []
    if self._average_decay is not None:
      averaged = [v for _, v in pairs] + tf1.get_collection(layers.STATISTICS)
      with tf.control_dependencies([applied, *updates]):
        averages = [_average(v, self._average_decay) for v in averaged]
    return tf.group(applied, *updates, *averages, name=name or 'step')


class ClippedOptimizer(tf1.train.Optimizer):
  """Scales all gradients by one factor, so that their norm has a bound.

  Pascanu et al., arXiv 1211.5063, algorithm 1. Ops of one weight are made in
  the weight's name scope, so that they belong to its stage. Gradients of
  embeddings stay slices, and update only the rows that were read.
  """

  def __init__(self, inner: tf1.train.Optimizer, norm: float) -> None:
    """Initializes a ClippedOptimizer.

    Args:
      inner: Optimizer that applies the gradients.
      norm: Largest norm of all gradients together.
    """
    super().__init__(use_locking=False, name='clipped')
    self._inner = inner
    self._norm = norm

  def apply_gradients(self, grads_and_vars: Sequence[tuple[Any, tf.Variable]],
                      global_step: Any = None,
                      name: str | None = None) -> tf.Operation:
    """See `Optimizer`."""
    pairs = [(g, v) for g, v in grads_and_vars if g is not None]
    return self._inner.apply_gradients(
        clip_jointly(self._norm)(pairs), global_step, name)


class Adam(tf1.train.Optimizer):
  """Adam with one op per arithmetic operation.

  Kingma and Ba, arXiv 1412.6980, algorithm 1 with the rate of section 2.
  """

  def __init__(self, rate: float, beta1: float = .9, beta2: float = .999,
               epsilon: float = 1e-8) -> None:
    """Initializes an Adam.

    Args:
      rate: Learning rate.
      beta1: Decay of the average of gradients.
      beta2: Decay of the average of squared gradients.
      epsilon: Number that is added to the root of the second average.
    """
    super().__init__(use_locking=False, name='Adam')
    self._rate = rate
    self._betas = beta1, beta2
    self._epsilon = epsilon

  def _create_slots(self, var_list: Sequence[tf.Variable]) -> None:
    for variable in var_list:
      self._zeros_slot(variable, 'mean', self._name)
      self._zeros_slot(variable, 'square', self._name)
    first = min(var_list, key=lambda v: v.name)
    self._steps = self._create_non_slot_variable(0., 'steps', first)

  def _prepare(self) -> None:
    step = self._steps + 1.
    beta1, beta2 = self._betas
    self._corrected = self._rate * tf.sqrt(1. - tf.pow(beta2, step)) / (
        1. - tf.pow(beta1, step))

  def _resource_apply_dense(self, grad: tf.Tensor,
                            handle: tf.Variable) -> tf.Operation:
    mean, square = (self.get_slot(handle, name) for name in ('mean', 'square'))
    beta1, beta2 = self._betas
    new_mean = mean * beta1 + grad * (1. - beta1)
    new_square = square * beta2 + tf.square(grad) * (1. - beta2)
    update = self._corrected * new_mean / (tf.sqrt(new_square) + self._epsilon)
    return tf.group(
        mean.assign(new_mean).op,
        square.assign(new_square).op,
        handle.assign_sub(update).op)

  def _finish(self, update_ops: Sequence[tf.Operation],
              name_scope: str) -> tf.Operation:
    with tf.control_dependencies(update_ops):
      return self._steps.assign_add(1., name=name_scope).op


class RmsProp(tf1.train.Optimizer):
  """Centered RMSProp with momentum, with one op per arithmetic operation.

  Tieleman and Hinton, lecture 6.5 of "Neural Networks for Machine Learning",
  2012; Graves, arXiv 1308.0850, equations 38 to 41.
  """

  def __init__(self, rate: float, rho: float = .9, momentum: float = .9,
               epsilon: float = 1.) -> None:
    """Initializes an RmsProp.

    Args:
      rate: Learning rate.
      rho: Decay of the averages of gradients, which begin at 0, and of their
        squares, which begin at 1.
      momentum: Share of the last update in the next one.
      epsilon: Number that is added to the average before its root is taken.
    """
    super().__init__(use_locking=False, name='RmsProp')
    self._rate = rate
    self._rho = rho
    self._momentum = momentum
    self._epsilon = epsilon

  def _create_slots(self, var_list: Sequence[tf.Variable]) -> None:
    for variable in var_list:
      self._get_or_make_slot_with_initializer(variable, tf1.ones_initializer(),
                                              variable.shape, tf.float32,
                                              'square', self._name)
      self._zeros_slot(variable, 'mean', self._name)
      self._zeros_slot(variable, 'momentum', self._name)

  def _resource_apply_dense(self, grad: tf.Tensor,
                            handle: tf.Variable) -> tf.Operation:
    square, mean, momentum = (
        self.get_slot(handle, name) for name in ('square', 'mean', 'momentum'))
    new_square = square * self._rho + tf.square(grad) * (1. - self._rho)
    new_mean = mean * self._rho + grad * (1. - self._rho)
    spread = new_square - tf.square(new_mean) + self._epsilon
    update = (momentum * self._momentum
              + self._rate * grad * tf.math.rsqrt(spread))
    return tf.group(
        square.assign(new_square).op,
        mean.assign(new_mean).op,
        momentum.assign(update).op,
        handle.assign_sub(update).op)


def clip_each(limit: float) -> Clip:
  """Returns a function that scales each gradient whose norm is too large."""

  def clip(
      pairs: Sequence[tuple[tf.Tensor, tf.Variable]]
  ) -> list[tuple[tf.Tensor, tf.Variable]]:
    result = []
    for gradient, variable in pairs:
      with tf.name_scope(f'{variable.op.name}/clip/'):
        result.append((tf.clip_by_norm(gradient, limit), variable))
    return result

  return clip


def clip_jointly(limit: float) -> Clip:
  """Returns a function that scales gradients by their joint norm.

  Gradients are scaled if the norm of all of them exceeds the limit. The result
  is that of `tf.clip_by_global_norm`, but each op is in the scope of its
  weight. Gradients of embeddings stay slices.
  """

  def clip(
      pairs: Sequence[tuple[Any,
                            tf.Variable]]) -> list[tuple[Any, tf.Variable]]:
    squares = []
    for gradient, variable in pairs:
      with tf.name_scope(f'{variable.op.name}/clip/'):
        squares.append(tf.nn.l2_loss(_values(gradient)))
    scale = limit / tf.maximum(tf.sqrt(2. * tf.add_n(squares)), limit)
    result = []
    for gradient, variable in pairs:
      with tf.name_scope(f'{variable.op.name}/clip/'):
        scaled = _values(gradient) * scale
      if isinstance(gradient, tf.IndexedSlices):
        scaled = tf.IndexedSlices(scaled, gradient.indices,
                                  gradient.dense_shape)
      result.append((scaled, variable))
    return result

  return clip


def _values(gradient: Any) -> tf.Tensor:
  return (gradient.values
          if isinstance(gradient, tf.IndexedSlices) else gradient)


def _dense(gradient: tf.Tensor, variable: tf.Variable) -> tf.Tensor:
  """Returns a gradient of all rows, even if few of them were read."""
  if not isinstance(gradient, tf.IndexedSlices):
    return gradient
  with tf.name_scope(f'{variable.op.name}/dense/'):
    return tf.math.unsorted_segment_sum(gradient.values, gradient.indices,
                                        variable.shape[0])


def _average(variable: tf.Variable, decay: float) -> tf.Operation:
  with tf.name_scope(f'{variable.op.name}/average/'):
    shadow = layers.weights(f'{variable.op.name}/average', variable.shape,
                            tf1.zeros_initializer(), trainable=False)
    return shadow.assign_sub((shadow - variable) * (1. - decay)).op
