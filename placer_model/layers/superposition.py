"""Feature conditioning, or parameter superposition (GDP, section 3.3)."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

import tensorflow as tf

from placer_model.layers import norms

# Result of `ConditioningLayer`: a tensor of conditions for each input width.
Conditions = Mapping[int, tf.Tensor]


def superpose(x: tf.Tensor, conditions: Conditions | None) -> tf.Tensor:
  """Returns c(x0) * x of equation 5, the input of a dense layer g.

  Args:
    x: float32 [M, w], input before the conditioning.
    conditions: float32 [M, w] for each width w. None switches superposition
      off.

  Returns:
    float32 [M, w].
  """
  return x if conditions is None else x * conditions[x.shape[-1]]


class ConditioningLayer(tf.keras.layers.Layer):
  """The function c of equation 5: a transformer layer on the graph embedding.

  Dense layers differ in the width of their input, so a linear map for each
  width follows the transformer layer. The maps' biases start at 1 and their
  kernels start small. So an untrained network is close to one without
  conditioning.
  """

  def __init__(self, transformer: tf.keras.layers.Layer, widths: Sequence[int],
               scale: float, seed: int = 0, **kwargs: Any) -> None:
    """Makes the layer.

    Args:
      transformer: Layer that maps [M, h] to [M, h].
      widths: Input widths of the dense layers to be conditioned.
      scale: Approximate standard deviation of an untrained condition around 1.
      seed: Seed of the initial weights of the linear maps.
      **kwargs: Arguments of the Keras layer.
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
    """Returns conditions {w: [M, w]} from x0 [M, h]."""
    x = self.norm(self.transformer(graph_embedding))  # [M, h]
    return {width: dense(x) for width, dense in zip(self._widths, self.maps)}
