"""Feature conditioning, or parameter superposition (GDP, section 3.3)."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

import tensorflow as tf

from placer_model.layers import norms

# What `ConditioningLayer` returns: a condition for each input width.
Conditions = Mapping[int, tf.Tensor]


def superpose(x: tf.Tensor, conditions: Conditions | None) -> tf.Tensor:
  """c(x0) * x of equation 5, the input of a dense layer g.

  Args:
    x: float32 [M, w].
    conditions: For each width w a float32 [M, w]; None switches superposition
      off.

  Returns:
    float32 [M, w].
  """
  return x if conditions is None else x * conditions[x.shape[-1]]


class ConditioningLayer(tf.keras.layers.Layer):
  """c of equation 5: one more transformer layer, on the graph embedding.

  Dense layers differ in the width of their input, so the transformer layer is
  followed by a linear map for each width. Their biases start at 1 and their
  kernels small: a fresh network begins close to an unconditioned one.
  """

  def __init__(self, transformer: tf.keras.layers.Layer, widths: Sequence[int],
               scale: float, seed: int = 0, **kwargs: Any) -> None:
    """Makes the layer.

    Args:
      transformer: Maps [M, h] to [M, h].
      widths: Input widths of the dense layers to be conditioned.
      scale: Standard deviation, roughly, of an untrained condition around 1.
      seed: Decides the first weights.
      **kwargs: Of the Keras layer.
    """
    super().__init__(**kwargs)
    self.transformer = transformer
    self.norm = norms.LayerNorm(name='norm')
    self._widths = sorted(set(widths))
    self.maps = [
        tf.keras.layers.Dense(
            width, name=f'to_{width}', bias_initializer='ones',
            kernel_initializer=tf.keras.initializers.VarianceScaling(
                max(scale, 1e-6)**2, seed=seed + i))
        for i, width in enumerate(self._widths)
    ]

  def call(self, graph_embedding: tf.Tensor) -> Conditions:
    """Conditions {w: [M, w]} from x0 [M, h]."""
    x = self.norm(self.transformer(graph_embedding))  # [M, h]
    return {width: dense(x) for width, dense in zip(self._widths, self.maps)}
