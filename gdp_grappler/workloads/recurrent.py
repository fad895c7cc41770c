"""Layers of the recurrent models: LSTMs, attention, softmax.

Layers are unrolled: the caller makes one step after another, and each step adds
ops. An LSTM has one matrix per gate and input, as in its equations. So gates,
which do not depend on one another, are ops that can be placed, and a cell has
as many ops as in the graphs of the papers. TensorFlow sums the gradients of a
matrix over all steps, and holds all of them until then. This is most of the
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
  """The state that an LSTM passes to its next step.

  Attributes:
    cell: [B, units], state of the cell.
    hidden: [B, units], hidden state, which is also the output.
  """

  cell: tf.Tensor
  hidden: tf.Tensor


class Lstm:
  """An LSTM layer (Hochreiter and Schmidhuber 1997; with forget gates).

  Attributes:
    state: State after the last step; zeros before the first step.
  """

  def __init__(self, stage: int, name: str, width: int, units: int,
               batch: int) -> None:
    """Makes the weights.

    Args:
      stage: Stage of the weights and of all steps.
      name: Name, unique in the stage.
      width: Width of the inputs.
      units: Width of cell and output.
      batch: B, number of examples.
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
    """Returns the output [B, units] of the next step.

    Args:
      x: [B, width], input.
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
  """Runs two LSTMs from both ends (Graves and Schmidhuber 2005).

  Args:
    stage: Stage of the LSTMs.
    inputs: [T] of [B, width], inputs.
    units: Units of each LSTM.
    keep_out: Share of the inputs that dropout zeroes.

  Returns:
    Outputs of both, [T] of [B, 2 units], and the last state of the LSTM that
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
      stage: Stage of the weights and of all steps.
      memory: [T] of [B, M], outputs of the encoder.
      query_width: Width of the queries.
      units: Units of the hidden layer that computes scores.
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
    """Returns the context [B, M] for a query [B, query_width]."""
    with tf.name_scope(f'{self._scope}/step{self._steps}/'):
      self._steps += 1
      hidden = tf.tanh(self._keys + tf.matmul(query, self._query)[:, None])
      scores = tf.reduce_sum(hidden * self._score, axis=2)
      shares = tf.nn.softmax(scores)
      return tf.matmul(shares[:, None], self._memory)[:, 0]


class Mixer:
  """Makes attentional states (Luong et al., arXiv 1508.04025, equation 5)."""

  def __init__(self, stage: int, width: int, units: int) -> None:
    """Makes the weights.

    Args:
      stage: Stage of the weights and of all steps.
      width: Width of context and output together.
      units: Width of the result.
    """
    self._scope = f'stage{stage}/mixer'
    self._steps = 0
    with layers.stage(stage), tf1.variable_scope('mixer'):
      self._kernel = _matrix('kernel', [width, units])

  def step(self, context: tf.Tensor, output: tf.Tensor) -> tf.Tensor:
    """Mixes a context [B, M] and an output [B, width - M] to [B, units]."""
    with tf.name_scope(f'{self._scope}/step{self._steps}/'):
      self._steps += 1
      return tf.tanh(
          tf.matmul(tf.concat([context, output], axis=1), self._kernel))


def embedded(stage: int, name: str, words: int, units: int,
             ids: tf.Tensor) -> list[tf.Tensor]:
  """Returns rows of a table for ids int [T, B], [T] of [B, units]."""
  with layers.stage(stage), tf1.variable_scope(name):
    table = layers.weights('table', [words, units], _uniform())
    return tf.unstack(tf.nn.embedding_lookup(table, ids))


def softmax_loss(stage: int, outputs: Sequence[tf.Tensor], labels: tf.Tensor,
                 words: int, block: int) -> tf.Tensor:
  """Returns the mean cross entropy over all words, a scalar.

  Args:
    stage: Stage of weights and ops.
    outputs: [T] of [B, units], outputs of the top layer.
    labels: int [T, B], next words.
    words: Size of the vocabulary.
    block: Steps per product with the matrix. With one step per product, the
      gradients of the matrix, which are summed, would need more memory than all
      other tensors.
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
  """Returns a weight, which is read once for all steps."""
  return tf.convert_to_tensor(layers.weights(name, shape, _uniform()))


def _uniform() -> Any:
  return tf1.random_uniform_initializer(-.1, .1)
