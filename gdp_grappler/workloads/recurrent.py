"""Layers of the recurrent models: LSTMs, attention, softmax.

Unrolled: the caller steps through time, and each step adds ops. An LSTM has
one matrix per gate and input, as its equations have it: so the gates, which do
not depend on one another, are ops that may be placed, and a cell is as many
ops as in the graphs of the papers. Gradients of a matrix are summed up over the
steps by TensorFlow, which holds all of them until then; that is most of the
memory that these models need.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Sequence

import tensorflow as tf

from gdp_grappler.workloads import layers

tf1 = tf.compat.v1
_GATES = ('input', 'update', 'forget', 'output')


@dataclasses.dataclass(frozen=True)
class State:
  """What an LSTM hands to its next step.

  Attributes:
    cell: [B, units].
    hidden: [B, units], also its output.
  """

  cell: tf.Tensor
  hidden: tf.Tensor


class Lstm:
  """An LSTM layer (Hochreiter and Schmidhuber 1997; with forget gates).

  Attributes:
    state: After the last step; zeros before the first.
  """

  def __init__(self, stage: int, name: str, width: int, units: int,
               batch: int) -> None:
    """Makes the weights.

    Args:
      stage: Where they and all steps belong.
      name: Unique in the stage.
      width: Of the inputs.
      units: Of cell and output.
      batch: B.
    """
    self._scope = f'stage{stage}/{name}'
    self._steps = 0
    with layers.stage(stage), tf1.variable_scope(name):
      self._gates = {
          gate: (_matrix(f'{gate}_kernel', [width, units]),
                 _matrix(f'{gate}_recurrent',
                         [units, units]), _bias(f'{gate}_bias',
                                                units)) for gate in _GATES
      }
      zeros = tf.zeros([batch, units])
    self.state = State(zeros, zeros)

  def step(self, x: tf.Tensor, keep_out: float = 0.) -> tf.Tensor:
    """The output [B, units] of the next step.

    Args:
      x: [B, width].
      keep_out: Share of the inputs that dropout zeroes.
    """
    with tf.name_scope(f'{self._scope}/step{self._steps}/'):
      self._steps += 1
      x, old = layers.dropout(x, keep_out), self.state
      i, j, f, o = (self._gate(gate, x, old.hidden) for gate in _GATES)
      cell = old.cell * tf.sigmoid(f + 1.) + tf.sigmoid(i) * tf.tanh(j)
      self.state = State(cell, tf.tanh(cell) * tf.sigmoid(o))
    return self.state.hidden

  def _gate(self, gate: str, x: tf.Tensor, hidden: tf.Tensor) -> tf.Tensor:
    kernel, recurrent, bias = self._gates[gate]
    return tf.nn.bias_add(
        tf.matmul(x, kernel) + tf.matmul(hidden, recurrent), bias)


def both_ways(stage: int, inputs: Sequence[tf.Tensor], units: int,
              keep_out: float) -> tuple[list[tf.Tensor], State]:
  """Two LSTMs that read from both ends (Graves and Schmidhuber 2005).

  Args:
    stage: Where they belong.
    inputs: [T] of [B, width].
    units: Of each.
    keep_out: Share of the inputs that dropout zeroes.

  Returns:
    Outputs of both, [T] of [B, 2 units], and the last state of the one that
    reads forward.
  """
  batch, width = inputs[0].shape
  forward, backward = (Lstm(stage, name, width, units, batch)
                       for name in ('forward', 'backward'))
  ahead = [forward.step(x, keep_out) for x in inputs]
  behind = [backward.step(x, keep_out) for x in reversed(inputs)]
  with tf.name_scope(f'stage{stage}/both'):
    outputs = [tf.concat(pair, axis=1) for pair in zip(ahead, reversed(behind))]
  return outputs, forward.state


class Attention:
  """Additive attention (Bahdanau et al., arXiv 1409.0473, appendix A.1.2)."""

  def __init__(self, stage: int, memory: Sequence[tf.Tensor], query_width: int,
               units: int) -> None:
    """Makes the weights and the keys of all positions.

    Args:
      stage: Where they and all steps belong.
      memory: [T] of [B, M], the encoder's outputs.
      query_width: Of the queries.
      units: Of the hidden layer that scores.
    """
    self._scope = f'stage{stage}/attention'
    self._steps = 0
    batch, width = memory[0].shape
    with layers.stage(stage), tf1.variable_scope('attention'):
      self._query = _matrix('query_kernel', [query_width, units])
      self._score = _matrix('score', [units, 1])[:, 0]
      self._memory = tf.stack(memory, axis=1)
      keys = tf.matmul(tf.reshape(self._memory, [-1, width]),
                       _matrix('memory_kernel', [width, units]))
      self._keys = tf.reshape(keys, [batch, len(memory), units])

  def step(self, query: tf.Tensor) -> tf.Tensor:
    """The context [B, M] for a query [B, query_width]."""
    with tf.name_scope(f'{self._scope}/step{self._steps}/'):
      self._steps += 1
      hidden = tf.tanh(self._keys + tf.matmul(query, self._query)[:, None])
      scores = tf.reduce_sum(hidden * self._score, axis=2)
      shares = tf.nn.softmax(scores)
      return tf.matmul(shares[:, None], self._memory)[:, 0]


class Mixer:
  """The attentional state (Luong et al., arXiv 1508.04025, equation 5)."""

  def __init__(self, stage: int, width: int, units: int) -> None:
    """Makes the weights.

    Args:
      stage: Where they and all steps belong.
      width: Of context and output together.
      units: Of the result.
    """
    self._scope = f'stage{stage}/mixer'
    self._steps = 0
    with layers.stage(stage), tf1.variable_scope('mixer'):
      self._kernel = _matrix('kernel', [width, units])

  def step(self, context: tf.Tensor, output: tf.Tensor) -> tf.Tensor:
    """[B, units] of a context [B, M] and an output [B, width - M]."""
    with tf.name_scope(f'{self._scope}/step{self._steps}/'):
      self._steps += 1
      return tf.tanh(
          tf.matmul(tf.concat([context, output], axis=1), self._kernel))


def embedded(stage: int, name: str, words: int, units: int,
             ids: tf.Tensor) -> list[tf.Tensor]:
  """[T] of [B, units], rows of a table for ids int [T, B]."""
  with layers.stage(stage), tf1.variable_scope(name):
    table = layers.weights('table', [words, units], _uniform())
    return tf.unstack(tf.nn.embedding_lookup(table, ids))


def softmax_loss(stage: int, outputs: Sequence[tf.Tensor], labels: tf.Tensor,
                 words: int, block: int) -> tf.Tensor:
  """Mean cross entropy over all words, a scalar.

  Args:
    stage: Where weights and ops belong.
    outputs: [T] of [B, units].
    labels: int [T, B].
    words: Size of the vocabulary.
    block: Steps per product with the matrix. With one step, the gradients of
      the matrix that are summed up would need more memory than all else.
  """
  units = outputs[0].shape[-1]
  with layers.stage(stage), tf1.variable_scope('softmax'):
    kernel = _matrix('kernel', [units, words])
    bias = layers.weights('bias', [words], tf1.zeros_initializer())
    losses = []
    for start in range(0, len(outputs), block):
      joined = tf.concat(outputs[start:start + block], axis=0)
      logits = tf.nn.bias_add(tf.matmul(joined, kernel), bias)
      losses.append(
          tf.reduce_sum(
              tf.nn.sparse_softmax_cross_entropy_with_logits(
                  labels=tf.reshape(labels[start:start + block], [-1]),
                  logits=logits)))
    return tf.add_n(losses) / float(labels.shape.num_elements())


def _bias(name: str, units: int) -> tf.Tensor:
  return tf.convert_to_tensor(
      layers.weights(name, [units], tf1.zeros_initializer()))


def _matrix(name: str, shape: Sequence[int]) -> tf.Tensor:
  """A weight, read once for all steps."""
  return tf.convert_to_tensor(layers.weights(name, shape, _uniform()))


def _uniform() -> Any:
  return tf1.random_uniform_initializer(-.1, .1)
