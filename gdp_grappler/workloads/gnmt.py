"""GNMT: translation by deep LSTMs, with attention for every decoder layer.

Wu et al., arXiv 1609.08144, section 3. The lowest encoder layer reads in both
directions. Residual connections begin at the third layer. The query of the
additive attention is the last output of the lowest decoder layer, and its
result goes to all decoder layers. The model has 1,024 units, dropout 0.2,
gradients clipped to norm 5, and Adam. The batch of 64 is that of GDP's
appendix; 32,000 words. The decoder's layers begin with the last states of the
encoder.

The papers do not contain the number of unrolled steps. With 65 source and 65
target steps, the graphs have 26,203, 45,650 and 84,802 ops as the pass gets
them (GDP: 28,044, 46,600 and 83,712). The softmax takes 13 decoder steps at a
time.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, Callable, Sequence

import tensorflow as tf

from gdp_grappler.workloads import experts
from gdp_grappler.workloads import optimizers
from gdp_grappler.workloads import recurrent
from gdp_grappler.workloads import workload as workload_lib

tf1 = tf.compat.v1
# Number, from 0, of the first layer that adds its input to its output.
_FIRST_RESIDUAL = 2


@dataclasses.dataclass(frozen=True)
class GnmtSizes:
  """The sizes of a model.

  Attributes:
    layers: L, LSTM layers in the encoder, and as many in the decoder.
    batch: Number of sentence pairs.
    units: Width of embeddings, cells, outputs and attention.
    words: Size of each vocabulary.
    source: Steps of the encoder.
    target: Steps of the decoder.
    block: Decoder steps per product with the softmax matrix.
    dropout: Share of each layer's inputs that is zeroed.
    rate: Learning rate.
  """

  layers: int
  batch: int = 64
  units: int = 1024
  words: int = 32_000
  source: int = 65
  target: int = 65
  block: int = 13
  dropout: float = .2
  rate: float = 2e-4


def build(sizes: GnmtSizes) -> tf.Tensor:
  """Returns the loss of a batch of translations; see `translation_loss`."""
  return translation_loss(sizes, _encode, _decode)


def translation_loss(sizes: GnmtSizes, encode: Callable[..., Any],
                     decode: Callable[..., Any]) -> tf.Tensor:
  """Returns the loss of a batch of sentence pairs.

  Encoder layer k is stage k, and decoder layer k is stage L + k. The embeddings
  are in the stages of the lowest layers. Attention is stage 2 L, and the
  softmax is stage 2 L + 1.

  Args:
    sizes: Sizes of the model.
    encode: Function from sizes and words [source, batch] to outputs [source]
      and last states [L].
    decode: Function from sizes, the encoder's outputs and states, and the
      previous words [target, batch] to outputs [target].
  """
  source = tf1.placeholder(tf.int32, [sizes.source, sizes.batch], 'source')
  target = tf1.placeholder(tf.int32, [sizes.target + 1, sizes.batch], 'target')
  memory, states = encode(sizes, source)
  outputs = decode(sizes, memory, states, target[:-1])
  return recurrent.softmax_loss(2 * sizes.layers + 1, outputs, target[1:],
                                sizes.words, sizes.block)


def _encode(sizes: GnmtSizes,
            ids: tf.Tensor) -> tuple[list[tf.Tensor], list[recurrent.State]]:
  """Returns outputs [T] of the top layer, and each layer's last state [L]."""
  words = recurrent.embedded(0, 'embedding', sizes.words, sizes.units, ids)
  outputs, lowest = recurrent.both_ways(0, words, sizes.units, sizes.dropout)
  upper = [
      _lstm(sizes, k, 'encoder', sizes.units * (2 if k == 1 else 1))
      for k in range(1, sizes.layers)
  ]
  for t, x in enumerate(outputs):
    for k, lstm in enumerate(upper, 1):
      x = _residual(k, k, x, lstm.step(x, sizes.dropout))
    outputs[t] = x
  return outputs, [lowest, *(lstm.state for lstm in upper)]


def _decode(sizes: GnmtSizes, memory: Sequence[tf.Tensor],
            states: Sequence[recurrent.State],
            ids: tf.Tensor) -> list[tf.Tensor]:
  """Returns outputs [T] of the top layer for the previous words int [T, B]."""
  first = sizes.layers
  words = recurrent.embedded(first, 'embedding', sizes.words, sizes.units, ids)
  attention = recurrent.Attention(2 * sizes.layers, memory, sizes.units,
                                  sizes.units)
  width = sizes.units + memory[0].shape[1]
  lstms = [
      _lstm(sizes, first + k, 'decoder', width) for k in range(sizes.layers)
  ]
  for lstm, state in zip(lstms, states):
    lstm.state = state
  outputs = []
  for x in words:
    context = attention.step(lstms[0].state.hidden)
    for k, lstm in enumerate(lstms):
      y = lstm.step(_concatenated(first + k, x, context), sizes.dropout)
      x = _residual(first + k, k, x, y)
    outputs.append(x)
  return outputs


def _lstm(sizes: GnmtSizes, stage: int, name: str,
          width: int) -> recurrent.Lstm:
  return recurrent.Lstm(stage, name, width, sizes.units, sizes.batch)


def _concatenated(stage: int, x: tf.Tensor, context: tf.Tensor) -> tf.Tensor:
  with tf.name_scope(f'stage{stage}/beside'):
    return tf.concat([x, context], axis=1)


def _residual(stage: int, layer: int, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
  if layer < _FIRST_RESIDUAL:
    return y
  with tf.name_scope(f'stage{stage}/residual'):
    return x + y


def joined_stages(num_layers: int) -> tuple[tuple[int, ...], ...]:
  """Returns ways to join stages if there are few devices.

  First, encoder and decoder layers of one height, which do not run at the same
  time. Then also attention and softmax with the highest layers. See
  `experts.stage_per_device`.
  """
  heights = (*range(num_layers), *range(num_layers))
  return ((*heights, num_layers, num_layers + 1), (*heights, num_layers - 1,
                                                   num_layers - 1))


def _workload(name: str, sizes: GnmtSizes,
              paper_ops: int) -> workload_lib.Workload:
  return workload_lib.Workload(
      name=name,
      setting=(f'{sizes.layers} + {sizes.layers} layers, batch {sizes.batch}, '
               f'hidden {sizes.units}, {sizes.words} words, {sizes.source} + '
               f'{sizes.target} steps, Adam'),
      source='GDP (arXiv 1910.01578) appendix; Wu et al. 2016',
      paper_ops=paper_ops, num_devices=sizes.layers, build=functools.partial(
          build, sizes), optimizer=lambda: optimizers.ClippedOptimizer(
              tf1.train.AdamOptimizer(sizes.rate), norm=5.),
      expert=functools.partial(experts.stage_per_device,
                               joined=joined_stages(sizes.layers)))


WORKLOADS = (
    *(_workload(f'gnmt-{n}', GnmtSizes(n), ops)
      for n, ops in ((2, 28_044), (4, 46_600), (8, 83_712))),
    *(_workload(f'gnmt-{n}@tiny', GnmtSizes(n, 4, 16, 20, 2, 2, 2, .1, .02), 0)
      for n in (2, 4, 8)),
)
