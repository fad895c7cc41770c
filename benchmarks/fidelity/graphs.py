"""Training steps of four kinds of model: forward, backward, update.

Each builder makes a v1 graph. The names of its weights begin with their layer
(`layer3/...`), so the names of gradients and slots contain the layer, too. A
step takes a tenth of a second on one core, most of it in kernels.
"""

from __future__ import annotations

import re
from typing import Callable, Sequence

import numpy as np
import tensorflow as tf

from gdp_grappler.graph import op_graph
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.sources import pruning
from gdp_grappler.workloads import stages

tf1 = tf.compat.v1
_LAYER = re.compile(r'layer(\d+)')
MODULE = re.compile(r'layer\d+/\w+')  # A part of a layer.


def build(name: str) -> source_graph.SourceGraph:
  """Builds one of `BUILDERS`. The only fetch is the training op."""
  graph = tf.Graph()
  with graph.as_default():
    loss = BUILDERS[name]()
    step = tf1.train.MomentumOptimizer(1e-3, 0.9).minimize(
        loss, var_list=tf1.trainable_variables(), name='train')
  needed = pruning.needed(graph.as_graph_def(), (step.name,))
  return source_graph.SourceGraph(name, needed, (), (step.name,))


def layers(graph: op_graph.OpGraph) -> np.ndarray:
  """int [N], the layer of each op; see `stages.by_name`."""
  return stages.by_name(graph, _LAYER)


def lstm() -> tf.Tensor:
  """An unrolled LSTM of 4 layers and 8 steps that predicts the next word."""
  units, steps, batch, words = 320, 8, 64, 2000
  ids = tf1.placeholder(tf.int32, [batch, steps + 1], 'ids')
  with tf1.variable_scope('layer0'):
    table = _weights('embedding', [words, units])
    inputs = [tf.gather(table, ids[:, t]) for t in range(steps)]
  for layer in range(4):
    with tf1.variable_scope(f'layer{layer}', reuse=tf1.AUTO_REUSE):
      kernel = _weights('kernel', [2 * units, 4 * units])
      bias = _weights('bias', [4 * units])
      cell = hidden = tf.zeros([batch, units])
      outputs = []
      for step in range(steps):
        gates = tf.matmul(tf.concat([inputs[step], hidden], 1), kernel) + bias
        i, j, f, o = tf.split(gates, 4, 1)
        cell = cell * tf.sigmoid(f + 1.) + tf.sigmoid(i) * tf.tanh(j)
        hidden = tf.tanh(cell) * tf.sigmoid(o)
        outputs.append(hidden)
      inputs = outputs
  with tf1.variable_scope('layer4'):
    kernel = _weights('softmax', [units, words])
    losses = [
        tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=ids[:, t + 1], logits=tf.matmul(hidden, kernel))
        for t, hidden in enumerate(inputs)
    ]
    return tf.reduce_mean(tf.add_n(losses))


def cnn() -> tf.Tensor:
  """A stem, then three blocks of four branches, as in Inception."""
  batch, size, channels = 16, 32, 32
  x = tf1.placeholder(tf.float32, [batch, size, size, 3], 'images')
  labels = tf1.placeholder(tf.int32, [batch], 'labels')
  x = _convolution(x, 'layer0/stem', 3, channels)
  for block in range(1, 4):
    scope = f'layer{block}'
    branches = [
        _convolution(x, f'{scope}/b1', 1, 24),
        _convolution(_convolution(x, f'{scope}/b3_in', 1, 24), f'{scope}/b3', 3,
                     40),
        _convolution(
            _convolution(_convolution(x, f'{scope}/b5_in', 1, 16),
                         f'{scope}/b5_a', 3, 32), f'{scope}/b5_b', 3, 32),
        _convolution(tf.nn.avg_pool2d(x, 3, 1, 'SAME', name=f'{scope}/pool'),
                     f'{scope}/pooled', 1, 24)
    ]
    x = tf.concat(branches, 3, name=f'{scope}/concat')
  with tf1.variable_scope('layer4'):
    features = tf.reduce_mean(x, [1, 2])
    logits = tf.matmul(features, _weights('softmax', [x.shape[-1], 100]))
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels,
                                                       logits=logits))


def transformer() -> tf.Tensor:
  """Four blocks of attention with 4 heads and a feed-forward part each."""
  batch, length, width, heads, words = 8, 64, 256, 4, 1000
  ids = tf1.placeholder(tf.int32, [batch, length], 'ids')
  with tf1.variable_scope('layer0'):
    x = tf.gather(_weights('embedding', [words, width]), ids)
  for block in range(4):
    with tf1.variable_scope(f'layer{block}'):
      x = x + _attention(_normalized(x, 'norm_a'), heads)
      inner = tf.nn.relu(_dense(_normalized(x, 'norm_b'), 'up', 4 * width))
      x = x + _dense(inner, 'down', width)
  with tf1.variable_scope('layer4'):
    logits = _dense(x[:, :-1], 'softmax', words)
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=ids[:, 1:],
                                                       logits=logits))


def mixture() -> tf.Tensor:
  """Two layers of four experts, perceptrons mixed by a gate."""
  batch, width, hidden = 128, 384, 1024
  x = tf1.placeholder(tf.float32, [batch, width], 'features')
  labels = tf1.placeholder(tf.int32, [batch], 'labels')
  for layer in range(2):
    with tf1.variable_scope(f'layer{5 * layer}'):
      gate = tf.nn.softmax(_dense(x, 'gate', 4))
    experts = []
    for expert in range(4):
      with tf1.variable_scope(f'layer{5 * layer + 1 + expert}'):
        y = tf.nn.relu(_dense(x, 'in', hidden))
        y = tf.nn.relu(_dense(y, 'middle', hidden))
        experts.append(_dense(y, 'out', width) * gate[:, expert:expert + 1])
    with tf1.variable_scope(f'layer{5 * layer}'):
      x = x + tf.add_n(experts)
  with tf1.variable_scope('layer10'):
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=labels, logits=_dense(x, 'softmax', 100)))


def towers() -> tf.Tensor:
  """Eight wide towers and a deep one, which begin at the same time.

  Assume that one device has the wide towers and the first layer of the deep
  tower, and another device the rest. All first layers are ready at once. The
  sooner the first device runs the deep tower's first layer, the sooner the
  other device can begin.
  """
  batch, width, words = 128, 1024, 100
  x = tf1.placeholder(tf.float32, [batch, width], 'features')
  labels = tf1.placeholder(tf.int32, [batch], 'labels')
  ends = []
  for tower in range(8):
    with tf1.variable_scope(f'layer0/wide{tower}'):
      ends.append(tf.nn.relu(_dense(x, 'only', width)))
  with tf1.variable_scope('layer0/deep'):
    deep = tf.nn.relu(_dense(x, 'first', width))
  for layer in range(1, 9):
    with tf1.variable_scope(f'layer{layer}'):
      deep = tf.nn.relu(_dense(deep, 'deep', width))
  with tf1.variable_scope('layer0'):
    mixed = tf.add_n(ends) + deep
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=labels, logits=_dense(mixed, 'softmax', words)))


BUILDERS: dict[str, Callable[[], tf.Tensor]] = {
    'lstm': lstm, 'cnn': cnn, 'transformer': transformer, 'mixture': mixture,
    'towers': towers
}
# Graphs that are studied only for the order of their ops.
FOR_ORDER = ('towers',)


def _weights(name: str, shape: Sequence[int]) -> tf.Variable:
  return tf1.get_variable(name, shape, use_resource=True)


def _dense(x: tf.Tensor, name: str, width: int) -> tf.Tensor:
  with tf1.variable_scope(name):
    kernel = _weights('kernel', [x.shape[-1], width])
    return tf.tensordot(x, kernel, 1) + _weights('bias', [width])


def _convolution(x: tf.Tensor, name: str, size: int,
                 channels: int) -> tf.Tensor:
  with tf1.variable_scope(name):
    kernel = _weights('kernel', [size, size, x.shape[-1], channels])
    return tf.nn.relu(
        tf.nn.conv2d(x, kernel, 1, 'SAME') + _weights('bias', [channels]))


def _normalized(x: tf.Tensor, name: str) -> tf.Tensor:
  with tf1.variable_scope(name):
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return ((x - mean) * tf.math.rsqrt(variance + 1e-6)
            * _weights('scale', [x.shape[-1]]))


def _attention(x: tf.Tensor, heads: int) -> tf.Tensor:
  batch, length, width = x.shape

  def split(name: str) -> tf.Tensor:
    return tf.transpose(
        tf.reshape(_dense(x, name, width), [batch, length, heads, -1]),
        [0, 2, 1, 3])

  query, key, value = split('query'), split('key'), split('value')
  scores = tf.matmul(query, key, transpose_b=True)
  mixed = tf.matmul(tf.nn.softmax(scores / (width // heads)**.5), value)
  joined = tf.reshape(tf.transpose(mixed, [0, 2, 1, 3]), [batch, length, width])
  return _dense(joined, 'join', width)
