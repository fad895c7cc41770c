"""The Placer: LSTM encoder and decoder with attention (HDP, section 2.1)."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from placer_model.hdp import config as config_lib
from placer_model.hdp import lstm
from placer_model.hdp import weights as weights_lib


class Seq2SeqPlacer(tf.Module):
  """Reads K groups, then chooses a device for each, one after the other.

  The encoder has two directions. The input of the decoder is the embedding of
  the device that it chose last, and the encoder's state of the group that it
  decides next. The published implementation lacks that state, so that its
  decoder has to count groups. The decoder attends to the encoder's states by
  content (Bahdanau et al. 2015), and samples from softmax(C tanh(l / T)),
  equation 1.
  """

  def __init__(self, num_features: int, num_devices: int,
               config: config_lib.HdpConfig, seed: int) -> None:
    """Makes the network with its initial weights.

    Args:
      num_features: Width W of a group's embedding.
      num_devices: Number D of devices.
      config: Sizes and switches.
      seed: Seed of the weights.
    """
    super().__init__(name='seq2seq_placer')
    make = weights_lib.Weights(seed)
    hidden, half = config.hidden_units, config.hidden_units // 2
    self._config = config
    self._forward = lstm.Lstm(make, num_features, half, 'forward')
    self._backward = lstm.Lstm(make, num_features, half, 'backward')
    self._decoder = lstm.Lstm(make, 2 * hidden, hidden, 'decoder')
    self._go = make.matrix(1, hidden, 'go')
    self._devices = make.matrix(num_devices, hidden, 'devices')
    self._memory_map = make.matrix(hidden, config.attention_units, 'memory')
    self._query_map = make.matrix(hidden, config.attention_units, 'query')
    self._attention = make.matrix(config.attention_units, 1, 'attention')
    self._softmax = make.matrix(2 * hidden, num_devices, 'softmax')

  def sample(self, rows: tf.Tensor, allowed: tf.Tensor, count: int,
             seed: tf.Tensor) -> tf.Tensor:
    """Draws placements.

    Args:
      rows: float32 [K, W], embeddings of the groups.
      allowed: bool [K, D], allowed devices of each group.
      count: Number S of placements.
      seed: int32 [2], seed of the sample.

    Returns:
      int32 [S, K].
    """
    memory, keys, state = self._encode(rows, count)
    size, num_devices = allowed.shape
    uniform = tf.random.stateless_uniform([size, count, num_devices], seed,
                                          1e-20, 1.)
    gumbel = -tf.math.log(-tf.math.log(uniform))

    def decide(i: tf.Tensor, signal: tf.Tensor, cell: tf.Tensor,
               hidden: tf.Tensor, chosen: tf.TensorArray) -> tuple[Any, ...]:
      state = tf.repeat(memory[i][None], count, axis=0)
      cell, hidden = self._decoder.step(tf.concat([signal, state], axis=-1),
                                        cell, hidden)
      logits = tf.where(allowed[i], self._logits(hidden, memory, keys),
                        weights_lib.MASKED_LOGIT)
      device = tf.argmax(logits + gumbel[i], axis=-1, output_type=tf.int32)
      return (i + 1, tf.gather(self._devices,
                               device), cell, hidden, chosen.write(i, device))

    chosen = tf.while_loop(
        lambda i, *_: i < size, decide,
        (0, tf.repeat(self._go, count, axis=0), *state,
         tf.TensorArray(tf.int32, size, element_shape=[count])))[-1]
    return tf.transpose(chosen.stack())

  def log_prob(self, rows: tf.Tensor, allowed: tf.Tensor,
               devices: tf.Tensor) -> tf.Tensor:
    """Returns log-probabilities [S] of placements int32 [S, K]."""
    count = devices.shape[0]
    memory, keys, state = self._encode(rows, count)
    devices = tf.transpose(devices)  # [K, S]
    # A product, because the gradient of a gather adds in an undefined order.
    fed = tf.tensordot(tf.one_hot(devices[:-1], allowed.shape[1]),
                       self._devices, 1)
    go = tf.repeat(self._go, count, axis=0)
    signals = tf.concat([go[None], fed], axis=0)  # [K, S, h]
    states = tf.repeat(memory[:, None], count, axis=1)
    signals = tf.concat([signals, states], axis=-1)
    _, hidden = self._decoder.run(signals, *state)  # [K, S, h]
    logits = tf.where(allowed[:, None], self._logits(hidden, memory, keys),
                      weights_lib.MASKED_LOGIT)
    log_p = tf.gather(tf.nn.log_softmax(logits), devices,
                      batch_dims=devices.shape.rank)
    return tf.reduce_sum(log_p, axis=0)

  def _encode(self, rows: tf.Tensor,
              count: int) -> tuple[tf.Tensor, tf.Tensor, list[tf.Tensor]]:
    """Encodes the groups.

    Returns:
      States [K, h], keys [K, a], and the decoder's first state, [S, h] each.
    """
    rows = rows[:, None]  # [K, 1, W]
    cell_f, hidden_f = self._forward.run(rows)
    cell_b, hidden_b = self._backward.run(rows[::-1])
    memory = tf.concat([hidden_f, hidden_b[::-1]], axis=-1)[:, 0]
    state = [
        tf.repeat(tf.concat([f[-1], b[-1]], axis=-1), count, axis=0)
        for f, b in ((cell_f, cell_b), (hidden_f, hidden_b))
    ]
    return memory, tf.matmul(memory, self._memory_map), state

  def _logits(self, hidden: tf.Tensor, memory: tf.Tensor,
              keys: tf.Tensor) -> tf.Tensor:
    """Maps decoder states [..., h] to logits [..., D]."""
    query = tf.tensordot(hidden, self._query_map, 1)  # [..., a]
    match = tf.tanh(query[..., None, :] + keys)  # [..., K, a]
    scores = tf.tensordot(match, self._attention, 1)[..., 0]  # [..., K]
    context = tf.tensordot(tf.nn.softmax(scores), memory, 1)  # [..., h]
    logits = tf.tensordot(tf.concat([hidden, context], axis=-1), self._softmax,
                          1)
    return weights_lib.bounded(logits, self._config.tanh_constant,
                               self._config.temperature)
