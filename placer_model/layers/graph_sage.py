"""GraphSAGE with max pooling (GDP, section 3.1)."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tensorflow_gnn as tfgnn
from tensorflow_gnn.models import graph_sage

from placer_model import graph_tensor


class GraphSageLayer(tf.keras.layers.Layer):
  """One iteration of the graph embedding network.

  The aggregator (equation 2) is that of Hamilton et al. (NeurIPS 2017, equation
  3): h_N(v) = max over u in N(v) of sigmoid(W h_u + b). The new state (equation
  3) is h_v' = relu(f([h_v, h_N(v)])) with a dense layer f. N(v) are the
  producers and the consumers of v. Each of the two sets has its own W, and f
  gets both results, so that the direction of the dataflow is not lost. A unit
  without neighbours aggregates 0, a value that no sigmoid reaches.
  """

  def __init__(self, units: int, seed: int = 0, **kwargs: Any) -> None:
    """Makes the layer.

    Args:
      units: Width h of the states, before and after.
      seed: Seed of the initial weights, see `reset`.
      **kwargs: Arguments of the Keras layer.
    """
    super().__init__(**kwargs)
    self._seed = seed
    self.convolutions = {
        name:
            graph_sage.GraphSAGEPoolingConv(receiver_tag=tfgnn.TARGET,
                                            units=units, hidden_units=units,
                                            reduce_type='max_no_inf',
                                            activation='sigmoid', name=name)
        for name in (graph_tensor.PRODUCERS, graph_tensor.CONSUMERS)
    }
    self.dense = tf.keras.layers.Dense(units, 'relu', name='next_state')
    self._update = tfgnn.keras.layers.GraphUpdate(
        node_sets={
            graph_tensor.OP:
                tfgnn.keras.layers.NodeSetUpdate(
                    self.convolutions,
                    tfgnn.keras.layers.NextStateFromConcat(self.dense))
        })

  def call(self, graph: tfgnn.GraphTensor) -> tfgnn.GraphTensor:
    """Returns the graph with new states of all units."""
    return self._update(graph)

  def reset(self) -> None:
    """Draws the kernels again, from the seed.

    TF-GNN's layer takes no initializer, and Keras draws the kernels from the
    global random state.
    """
    for index, weight in enumerate(self.trainable_weights):
      if weight.shape.rank == 2:
        draw = tf.keras.initializers.GlorotUniform(self._seed + index)
        weight.assign(draw(weight.shape))
