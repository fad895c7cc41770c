"""NMT: translation by LSTMs with attention and input feeding.

HDP's set has "NMT with attention" of 2, 4 and 8 layers (Sutskever et al., arXiv
1409.3215, with the attention of Bahdanau et al., arXiv 1409.0473). Its texts
give neither sizes nor, where we have them, op counts. Here: encoder and decoder
of LSTM layers of 1,024 units that all read forward; additive attention asked by
the highest decoder layer; the attentional state goes to the softmax and, with
the next word, into the lowest layer (input feeding, Luong et al., arXiv
1508.04025, section 3.3), so that decoder steps wait for each other, which those
of GNMT do not. Batch 64, dropout 0.2, gradients clipped to norm 5, gradient
descent (Sutskever et al., section 3.4). With 70 source and 70 target steps the
graphs have OPS.
"""

from __future__ import annotations

import dataclasses
import functools

import tensorflow as tf

from gdp_grappler.workloads import clipping
from gdp_grappler.workloads import experts
from gdp_grappler.workloads import gnmt
from gdp_grappler.workloads import recurrent
from gdp_grappler.workloads import workload as workload_lib

tf1 = tf.compat.v1


@dataclasses.dataclass(frozen=True)
class Sizes:
  """The sizes of a model.

  Attributes:
    layers: L, of LSTM, in the encoder and in the decoder.
    batch: Sentence pairs.
    units: Width of embeddings, cells, outputs and attention.
    words: Of each vocabulary.
    source: Steps of the encoder.
    target: Steps of the decoder.
    block: Decoder steps per product with the softmax matrix.
    dropout: Share of what goes into each layer that is zeroed.
  """

  layers: int
  batch: int = 64
  units: int = 1024
  words: int = 32_000
  source: int = 70
  target: int = 70
  block: int = 14
  dropout: float = .2


def build(sizes: Sizes) -> tf.Tensor:
  """The loss of a batch of translations; stages as in `gnmt.build`."""
  source = tf1.placeholder(tf.int32, [sizes.source, sizes.batch], 'source')
  target = tf1.placeholder(tf.int32, [sizes.target + 1, sizes.batch], 'target')
  encoder = [_lstm(sizes, k, sizes.units) for k in range(sizes.layers)]
  memory = []
  for x in recurrent.embedded(0, 'embedding', sizes.words, sizes.units, source):
    memory.append(_upwards(encoder, x, sizes))
  outputs = _decode(sizes, memory, encoder, target[:-1])
  return recurrent.softmax_loss(2 * sizes.layers + 1, outputs, target[1:],
                                sizes.words, sizes.block)


def _decode(sizes, memory, encoder, ids) -> list[tf.Tensor]:
  """Attentional states [T] for the words int [T, B] before."""
  first, asks = sizes.layers, 2 * sizes.layers
  words = recurrent.embedded(first, 'embedding', sizes.words, sizes.units, ids)
  attention = recurrent.Attention(asks, memory, sizes.units, sizes.units)
  mix = recurrent.Mixer(asks, 2 * sizes.units, sizes.units)
  lstms = [_lstm(sizes, first + k, sizes.units * (1 if k else 2))
           for k in range(sizes.layers)]
  for lstm, below in zip(lstms, encoder):
    lstm.state = below.state
  with tf.name_scope(f'stage{asks}/start'):
    fed = tf.zeros([sizes.batch, sizes.units])
  outputs = []
  for word in words:
    with tf.name_scope(f'stage{first}/beside'):
      x = tf.concat([word, fed], axis=1)
    x = _upwards(lstms, x, sizes)
    fed = mix.step(attention.step(x), x)
    outputs.append(fed)
  return outputs


def _upwards(lstms, x, sizes) -> tf.Tensor:
  """One step of all layers."""
  for lstm in lstms:
    x = lstm.step(x, sizes.dropout)
  return x


def _lstm(sizes, stage, width) -> recurrent.Lstm:
  return recurrent.Lstm(stage, 'lstm', width, sizes.units, sizes.batch)


def _workload(name, sizes) -> workload_lib.Workload:
  return workload_lib.Workload(
      name=name,
      setting=(f'{sizes.layers} + {sizes.layers} layers, batch {sizes.batch}, '
               f'hidden {sizes.units}, {sizes.words} words, {sizes.source} + '
               f'{sizes.target} steps, SGD'),
      source='HDP (Mirhoseini et al., ICLR 2018); Bahdanau et al. 2015',
      paper_ops=0,
      num_devices=sizes.layers,
      build=functools.partial(build, sizes),
      optimizer=lambda: clipping.ClippedOptimizer(
          tf1.train.GradientDescentOptimizer(1.), norm=5.),
      expert=functools.partial(experts.stage_per_device,
                               joined=gnmt.joined_stages(sizes.layers)))


WORKLOADS = (
    *(_workload(f'nmt-{n}', Sizes(n)) for n in (2, 4, 8)),
    *(_workload(f'nmt-{n}@tiny', Sizes(n, 4, 16, 20, 2, 2, 2, .1))
      for n in (2, 4, 8)),
)
