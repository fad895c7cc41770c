"""Clips all gradients together, and keeps sparse gradients sparse."""

from __future__ import annotations

from typing import Any, Sequence

import tensorflow as tf
import tensorflow.compat.v1 as tf1


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
    squares = []
    for gradient, variable in pairs:
      with _scope(variable):
        squares.append(tf.nn.l2_loss(_values(gradient)))
    norm = tf.sqrt(2. * tf.add_n(squares))
    factor = self._norm / tf.maximum(norm, self._norm)
    return self._inner.apply_gradients(
        [(_scaled(g, factor, v), v) for g, v in pairs], global_step, name)


def _scaled(gradient: Any, factor: tf.Tensor,
            variable: tf.Variable) -> tf.Tensor | tf.IndexedSlices:
  with _scope(variable):
    scaled = _values(gradient) * factor
  if isinstance(gradient, tf.IndexedSlices):
    return tf.IndexedSlices(scaled, gradient.indices, gradient.dense_shape)
  return scaled


def _values(gradient: Any) -> tf.Tensor:
  return (gradient.values
          if isinstance(gradient, tf.IndexedSlices) else gradient)


def _scope(variable: tf.Variable) -> Any:
  return tf.name_scope(f'{variable.op.name}/clip/')
