"""The policy network: maps features of a graph to logits over devices.

It follows GDP (ICLR 2020 submission), section 3. The shapes of its weights do
not depend on the number of units, edges or devices. So the same weights serve
graphs of any size on any number of devices.
"""

from __future__ import annotations

import tensorflow as tf
import tensorflow_gnn as tfgnn

from gdp_grappler.features import schema
from placer_model import config as config_lib
from placer_model import graph_tensor
from placer_model.layers import graph_sage
from placer_model.layers import normalization
from placer_model.layers import norms
from placer_model.layers import positions
from placer_model.layers import superposition
from placer_model.layers import transformer_xl

# Logit of a device that is not allowed. It is finite, but its exponential is 0.
MASKED_LOGIT = -1e9

Features = dict[str, tf.Tensor]


class PlacerNetwork(tf.keras.Model):
  """Computes the logits over devices of all units in one forward pass.

  Attributes:
    config: Sizes and switches.
  """

  def __init__(self, config: config_lib.PlacerConfig,
               name: str = 'placer') -> None:
    """Makes the network with its initial weights.

    Args:
      config: Sizes, switches and the seed of the weights.
      name: Name of the Keras model.
    """
    super().__init__(name=name)
    self.config = config
    seeds = iter(range(1000 * config.seed, 1000 * (config.seed + 1), 10))
    init = tf.keras.initializers

    # Devices.
    self.device_dense = transformer_xl.dense(config.hidden_units, next(seeds),
                                             name='device')
    self.slot_embedding = tf.keras.layers.Embedding(
        config.device_slots, config.hidden_units, name='slot',
        embeddings_initializer=init.RandomNormal(stddev=0.5, seed=next(seeds)))

    # Graph embedding network.
    self.type_embedding = tf.keras.layers.Embedding(
        config.type_buckets, config.type_units, name='op_type',
        embeddings_initializer=init.RandomNormal(stddev=0.5, seed=next(seeds)))
    self.stem = transformer_xl.dense(config.hidden_units, next(seeds), 'relu',
                                     name='stem')
    self.graph_layers = [
        graph_sage.GraphSageLayer(config.hidden_units, next(seeds),
                                  name=f'graph_sage_{i}')
        for i in range(config.graph_layers)
    ]

    # Placement network.
    self.conditioning = self._make_conditioning(next(seeds), next(seeds))
    self.norm = norms.GraphNorm(name='norm')
    self.transformer_layers = [
        self._make_transformer(next(seeds), f'transformer_{i}')
        for i in range(config.transformer_layers)
    ]
    self.head_norm: tf.keras.layers.Layer = (
        norms.GraphNorm if config.centred_head else norms.LayerNorm)(
            name='head_norm')
    self.head = tf.keras.layers.Dense(
        config.device_units, name='head',
        kernel_initializer=init.VarianceScaling(
            max(config.initial_logit_scale, 1e-9)**2, seed=next(seeds)))
    self.device_key = transformer_xl.dense(config.device_units, next(seeds),
                                           name='device_key')

    self(_smallest_features())  # makes the variables
    for layer in self.graph_layers:
      layer.reset()

  @tf.autograph.experimental.do_not_convert  # traces 10 times as fast
  def call(self, features: Features, training: bool | None = None) -> tf.Tensor:
    """Returns the logits of a graph on a cluster.

    Args:
      features: Features by name, see `feature_specs`.
      training: Has no effect, because there is no dropout.

    Returns:
      float32 [M, D]; `MASKED_LOGIT` where a device is not allowed.

    Raises:
      tf.errors.InvalidArgumentError: the cluster has more than
        `config.device_slots` devices of one type.
    """
    del training
    devices = self.embed_devices(features['devices'])  # [D, h]
    x = self.embed_units(features, devices)  # [M, h]
    x = self.embed_graph(x, features)  # [M, h], x0
    x, conditions = self.attend(x)  # [M, h]
    x = superposition.superpose(self.head_norm(x), conditions)  # [M, h]
    query = self.head(x)  # [M, k]
    key = self.device_key(devices)  # [D, k]
    logits = tf.matmul(query, key, transpose_b=True)  # [M, D]
    logits *= self.config.device_units**-0.5
    if self.config.speed_prior:
      logits += normalization.log_speeds(features['devices'])
    return tf.where(features['allowed'], logits, MASKED_LOGIT)

  def embed_devices(self, devices: tf.Tensor) -> tf.Tensor:
    """Returns the states of the devices, float32 [D, h].

    Devices with equal features differ by the embedding of their slots.
    """
    slots = normalization.device_slots(devices)  # [D]
    with tf.control_dependencies([
        tf.debugging.assert_less(
            slots, self.config.device_slots,
            f'This policy knows at most {self.config.device_slots} devices of '
            'one type; give fewer or train one with more device_slots.')
    ]):
      slots = tf.identity(slots)
    inputs = normalization.device_inputs(devices)
    if self.config.places:
      inputs = tf.concat([
          inputs,
          positions.encode_places(
              normalization.slot_places(devices)[:, None], self.config.places)
      ], axis=1)
    return tf.nn.relu(self.device_dense(inputs) + self.slot_embedding(slots))

  def embed_units(self, features: Features, devices: tf.Tensor) -> tf.Tensor:
    """Returns the states of units before the graph embedding network, [M, h].

    A state depends on the type of op, the unit's features and edges, its
    allowed devices and, if the configuration asks for them, its position and
    coordinates.
    """
    bucket = tf.strings.to_hash_bucket_fast(features['op_types'],
                                            self.config.type_buckets)  # [M]
    figures = normalization.unit_inputs(features['units'], features['edges'],
                                        features['edge_bytes'],
                                        features['allowed'],
                                        features['devices'])  # [M, F]
    allowed = tf.cast(features['allowed'], tf.float32)  # [M, D]
    reach = tf.math.divide_no_nan(tf.matmul(allowed, devices),
                                  tf.reduce_sum(allowed, axis=1,
                                                keepdims=True))  # [M, h]
    parts = [self.type_embedding(bucket), figures, reach]
    if self.config.positions:
      parts.append(positions.encode(
          tf.shape(figures)[0], self.config.positions))
    if self.config.places:
      parts.append(
          positions.encode_places(normalization.places(features['units']),
                                  self.config.places))
    return self.stem(tf.concat(parts, axis=-1))

  def embed_graph(self, x: tf.Tensor, features: Features) -> tf.Tensor:
    """Applies the graph embedding network (section 3.1): [M, h] to [M, h]."""
    graph = graph_tensor.from_tensors(x, features['edges'])
    for layer in self.graph_layers:
      graph = layer(graph)
    embedded = graph.node_sets[graph_tensor.OP][tfgnn.HIDDEN_STATE]
    residual = self.config.graph_residual and self.config.graph_layers
    return embedded + x if residual else embedded

  def attend(self,
             x: tf.Tensor) -> tuple[tf.Tensor, superposition.Conditions | None]:
    """Applies the placement network (sections 3.2, 3.3) to x0 [M, h].

    Returns:
      The states [M, h], and the conditions of dense layers or None.
    """
    conditions = None
    if self.conditioning is not None:
      conditions = self.conditioning(x)
    x = self.norm(x)
    for layer in self.transformer_layers:
      x = layer(x, conditions)
    return x, conditions

  def _make_conditioning(
      self, seed: int, map_seed: int) -> superposition.ConditioningLayer | None:
    config = self.config
    if not config.superposition:
      return None
    widths = [config.hidden_units]
    if config.transformer_layers:
      widths.append(config.feed_forward_units)
    if config.transformer_layers and config.attention:
      widths.append(config.heads * config.head_units)
    return superposition.ConditioningLayer(
        self._make_transformer(seed, 'conditioning_transformer'), widths,
        config.initial_condition_scale, map_seed, name='conditioning')

  def _make_transformer(self, seed: int,
                        name: str) -> transformer_xl.TransformerXlLayer:
    config = self.config
    return transformer_xl.TransformerXlLayer(config.hidden_units, config.heads,
                                             config.head_units,
                                             config.feed_forward_units,
                                             config.segment_length,
                                             config.attention, seed, name=name)


def feature_specs() -> dict[str, tf.TensorSpec]:
  """Returns the specs of the network's inputs; M, E and D are unknown."""
  return {
      'op_types':
          tf.TensorSpec([None], tf.string, 'op_types'),
      'units':
          tf.TensorSpec([None, len(schema.UNIT_FEATURES)], tf.float32, 'units'),
      'edges':
          tf.TensorSpec([None, 2], tf.int32, 'edges'),
      'edge_bytes':
          tf.TensorSpec([None], tf.float32, 'edge_bytes'),
      'allowed':
          tf.TensorSpec([None, None], tf.bool, 'allowed'),
      'devices':
          tf.TensorSpec([None, len(schema.DEVICE_FEATURES)], tf.float32,
                        'devices'),
  }


def features_to_tensors(features: schema.GraphFeatures) -> Features:
  """Returns raw features as the dict that `PlacerNetwork` takes."""
  return {
      name: tf.constant(getattr(features, name), spec.dtype)
      for name, spec in feature_specs().items()
  }


def _smallest_features() -> Features:
  """Returns the features of one unit on one device."""
  return {
      name:
          tf.zeros([1 if size is None else size
                    for size in spec.shape], spec.dtype)
      for name, spec in feature_specs().items()
  }
