"""Clips all gradients together, and keeps sparse gradients sparse."""

from __future__ import annotations

from typing import Any, Sequence

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from gdp_grappler.workloads import optimizers


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
        optimizers.clip_jointly(self._norm)(pairs), global_step, name)
