"""Transformer-XL, a language model with recurrence between segments.

Dai et al., arXiv 1901.02860, with the sizes of GDP's appendix: batch 64,
sequences of 256 in segments of 64, d_model 500, d_inner 1000, 10 heads of 50. A
step unrolls the 4 segments of a sequence. Each layer attends to its segment and
to its own input in the segment before, without a gradient through the latter.
For the first segment, this is the input that the previous step left, which is
fed.

The papers contain no vocabulary, optimizer or dropout. Our choices: 10,000
words as in Penn Treebank, separate weights of embedding and softmax, Adam in
elementary operations, gradients clipped to a global norm of 0.25 as in the
authors' code, and dropout 0.1 in all places where the authors have it except on
the encoding of distances and on the last output before the softmax.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import tensorflow as tf

from gdp_grappler.workloads import experts
from gdp_grappler.workloads import layers
from gdp_grappler.workloads import optimizers
from gdp_grappler.workloads import workload

tf1 = tf.compat.v1
_MASKED = -1e9  # Added to the scores of later tokens. Their softmax is 0.


@dataclasses.dataclass(frozen=True)
class TransformerXlConfig:
  """Sizes of a Transformer-XL."""

  layers: int
  batch: int = 64
  length: int = 256
  segment: int = 64
  width: int = 500
  inner: int = 1000
  heads: int = 10
  head_width: int = 50
  words: int = 10_000
  dropout: float = .1


def build(config: TransformerXlConfig) -> tf.Tensor:
  """Returns the loss of predicting each next word."""
  last = config.layers + 1
  with tf.name_scope('stage0'):
    ids = tf1.placeholder(tf.int32, [config.batch, config.length + 1], 'ids')
  memories = [_first_memory(config, layer) for layer in range(config.layers)]
  losses = []
  for start in range(0, config.length, config.segment):
    x = _embedded(ids, start, config)
    for layer in range(config.layers):
      with layers.stage(layer + 1):
        memory, memories[layer] = memories[layer], tf.stop_gradient(x)
        x = _layer(x, memory, config)
    with layers.stage(last):
      logits = layers.dense(x, 'softmax', config.words)
      losses.append(
          layers.cross_entropy(logits,
                               ids[:, start + 1:start + config.segment + 1]))
  with tf.name_scope(f'stage{last}/'):
    return tf.add_n(losses) / len(losses)


def _first_memory(config: TransformerXlConfig, layer: int) -> tf.Tensor:
  with tf.name_scope(f'stage{layer + 1}/'):
    return tf1.placeholder(tf.float32,
                           [config.batch, config.segment, config.width],
                           'memory')


def _embedded(ids: tf.Tensor, start: int,
              config: TransformerXlConfig) -> tf.Tensor:
  """Returns the vectors of a segment's words, [B, S, width]."""
  with layers.stage(0):
    ids = ids[:, start:start + config.segment]
    table = layers.weights('embedding', [config.words, config.width],
                           tf1.random_normal_initializer(stddev=.02))
    x = tf.gather(table, ids) * config.width**.5
    return layers.dropout(x, config.dropout)


def _layer(x: tf.Tensor, memory: tf.Tensor,
           config: TransformerXlConfig) -> tf.Tensor:
  """Runs attention, then two dense layers.

  The input is added, and the sum normalized, after the attention and after the
  second dense layer.
  """
  mixed = layers.dropout(_attention(x, memory, config), config.dropout)
  x = layers.layer_norm(x + mixed, 'attention_norm')
  y = tf.nn.relu(layers.dense(x, 'up', config.inner))
  y = layers.dropout(y, config.dropout)
  y = layers.dropout(layers.dense(y, 'down', config.width), config.dropout)
  return layers.layer_norm(x + y, 'feed_forward_norm')


def _attention(x: tf.Tensor, memory: tf.Tensor,
               config: TransformerXlConfig) -> tf.Tensor:
  """Returns relative attention over memory and input (section 3.3)."""
  context = tf.concat([memory, x], 1)
  query = _heads(layers.dense(x, 'query', _joint(config), False), config)
  key = _heads(layers.dense(context, 'key', _joint(config), False), config)
  value = _heads(layers.dense(context, 'value', _joint(config), False), config)
  distance = tf.constant(_sinusoids(context.shape[1], config.width))
  position = tf.reshape(
      layers.dense(distance, 'position', _joint(config), False),
      [1, -1, config.heads, config.head_width])
  content_bias, position_bias = (layers.weights(
      name, [config.heads, 1, config.head_width], tf1.zeros_initializer())
                                 for name in ('content_bias', 'position_bias'))
  by_content = tf.matmul(query + content_bias, key, transpose_b=True)
  by_position = _shifted(
      tf.einsum('bhqd,khd->bhqk', query + position_bias, position[0]))
  scores = (by_content + by_position) * config.head_width**-.5
  scores += tf.constant(_mask(config.segment))
  weights = layers.dropout(tf.nn.softmax(scores), config.dropout)
  mixed = tf.transpose(tf.matmul(weights, value), [0, 2, 1, 3])
  mixed = tf.reshape(mixed, [config.batch, config.segment, _joint(config)])
  return layers.dense(mixed, 'join', config.width, bias=False)


def _joint(config: TransformerXlConfig) -> int:
  return config.heads * config.head_width


def _heads(x: tf.Tensor, config: TransformerXlConfig) -> tf.Tensor:
  """Reshapes [B, S, heads * d] to [B, heads, S, d]."""
  x = tf.reshape(x, [config.batch, -1, config.heads, config.head_width])
  return tf.transpose(x, [0, 2, 1, 3])


def _shifted(scores: tf.Tensor) -> tf.Tensor:
  """Turns the distance of column k into that of key k (appendix B).

  Row q of S has to move S - 1 - q columns to the left. One column of padding
  and a reshape make each row begin one element later than the row above.
  """
  batch, heads, rows, columns = scores.shape
  padded = tf.pad(scores, [[0, 0], [0, 0], [0, 0], [1, 0]])
  padded = tf.reshape(padded, [batch, heads, columns + 1, rows])
  return tf.reshape(padded[:, :, 1:], [batch, heads, rows, columns])


def _sinusoids(length: int, width: int) -> np.ndarray:
  """Returns encodings of distances length-1 .. 0, float32 [length, width]."""
  rates = 1. / 10_000.**(np.arange(0., width, 2.) / width)
  angles = np.arange(length - 1., -1., -1.)[:, None] * rates
  return np.concatenate([np.sin(angles), np.cos(angles)], 1).astype(np.float32)


def _mask(segment: int) -> np.ndarray:
  """Returns large negative numbers if a key is after the query, [S, 2S]."""
  later = np.triu(np.ones([segment, 2 * segment], np.float32), segment + 1)
  return later * np.float32(_MASKED)


def _optimizer() -> optimizers.TrainingStep:
  return optimizers.TrainingStep(optimizers.Adam(2.5e-4),
                                 optimizers.clip_jointly(.25))


def _workload(depth: int) -> workload.Workload:
  return workload.Workload(
      name=f'transformer-xl-{depth}',
      setting=(f'{depth} layers, batch 64, 4 segments of 64, d_model 500, '
               'd_inner 1000, 10 heads of 50, 10,000 words, unfused Adam'),
      source='GDP (Zhou et al., arXiv 1910.01578), appendix',
      paper_ops={2: 2618, 4: 5200, 8: 10_400}[depth], num_devices=depth,
      build=functools.partial(build, TransformerXlConfig(depth)),
      optimizer=_optimizer, expert=experts.equal_blocks)


def _tiny(depth: int) -> workload.Workload:
  segments = max(1, 4 // depth)
  return dataclasses.replace(
      _workload(depth), name=f'transformer-xl-{depth}@tiny',
      setting=(f'{depth} layers, batch 4, {segments} x 8 words, d_model 16, '
               'gradient descent'), paper_ops=0, build=functools.partial(
                   build,
                   TransformerXlConfig(depth, batch=4, length=8 * segments,
                                       segment=8, width=16, inner=32, heads=2,
                                       head_width=8, words=50, dropout=0.)),
      optimizer=functools.partial(tf1.train.GradientDescentOptimizer, .3))


WORKLOADS: tuple[workload.Workload, ...] = tuple(
    make(depth) for depth in (2, 4, 8) for make in (_workload, _tiny))
