"""NMT: translation by LSTMs with attention and input feeding.

HDP's set has neural machine translation with attention in 2, 4 and 8 layers,
after Bahdanau et al., arXiv 1409.0473, and Wu et al., arXiv 1609.08144. Its
abstract mentions graphs of over 80,000 ops, but no sizes are given.

Our choices: LSTM layers of 1,024 units, of which the encoder's lowest reads in
both directions. The query of the additive attention is the output of the
highest decoder layer. The attentional state goes to the softmax and, with the
next word, to the lowest layer (input feeding, Luong et al., arXiv 1508.04025,
section 3.3). So a decoder step waits for all layers of the last step, unlike in
GNMT. Batch 64, dropout 0.2, 32,000 words, gradients clipped to norm 5, gradient
descent (Sutskever et al., arXiv 1409.3215, section 3.4). With 70 source and 70
target steps, the graphs have 28,171, 48,045 and 87,793 ops as the pass gets
them.
"""

from __future__ import annotations

import functools
from typing import Sequence

import tensorflow as tf

from gdp_grappler.workloads import experts
from gdp_grappler.workloads import gnmt
from gdp_grappler.workloads import optimizers
from gdp_grappler.workloads import recurrent
from gdp_grappler.workloads import workload as workload_lib

tf1 = tf.compat.v1


def build(sizes: gnmt.GnmtSizes) -> tf.Tensor:
  """Returns the loss of a batch of translations; stages as in `gnmt`."""
  return gnmt.translation_loss(sizes, _encode, _decode)


def _encode(sizes: gnmt.GnmtSizes,
            ids: tf.Tensor) -> tuple[list[tf.Tensor], list[recurrent.State]]:
  """Returns outputs [T] of the top layer, and each layer's last state [L]."""
  words = recurrent.embedded(0, 'embedding', sizes.words, sizes.units, ids)
  outputs, lowest = recurrent.both_ways(0, words, sizes.units, sizes.dropout)
  upper = [
      _lstm(sizes, k, sizes.units * (2 if k == 1 else 1))
      for k in range(1, sizes.layers)
  ]
  outputs = [_all_layers(upper, x, sizes) for x in outputs]
  return outputs, [lowest, *(lstm.state for lstm in upper)]


def _decode(sizes: gnmt.GnmtSizes, memory: Sequence[tf.Tensor],
            states: Sequence[recurrent.State],
            ids: tf.Tensor) -> list[tf.Tensor]:
  """Returns attentional states [T] for the previous words int [T, B]."""
  first, asks = sizes.layers, 2 * sizes.layers
  words = recurrent.embedded(first, 'embedding', sizes.words, sizes.units, ids)
  attention = recurrent.Attention(asks, memory, sizes.units, sizes.units)
  mix = recurrent.Mixer(asks, 2 * sizes.units, sizes.units)
  lstms = [
      _lstm(sizes, first + k, sizes.units * (1 if k else 2))
      for k in range(sizes.layers)
  ]
  for lstm, state in zip(lstms, states):
    lstm.state = state
  with tf.name_scope(f'stage{asks}/start'):
    fed = tf.zeros([sizes.batch, sizes.units])
  outputs = []
  for word in words:
    with tf.name_scope(f'stage{first}/beside'):
      x = tf.concat([word, fed], axis=1)
    x = _all_layers(lstms, x, sizes)
    fed = mix.step(attention.step(x), x)
    outputs.append(fed)
  return outputs


def _all_layers(lstms: Sequence[recurrent.Lstm], x: tf.Tensor,
                sizes: gnmt.GnmtSizes) -> tf.Tensor:
  """Runs one step of all layers."""
  for lstm in lstms:
    x = lstm.step(x, sizes.dropout)
  return x


def _lstm(sizes: gnmt.GnmtSizes, stage: int, width: int) -> recurrent.Lstm:
  return recurrent.Lstm(stage, 'lstm', width, sizes.units, sizes.batch)


def _workload(name: str, sizes: gnmt.GnmtSizes) -> workload_lib.Workload:
  return workload_lib.Workload(
      name=name,
      setting=(f'{sizes.layers} + {sizes.layers} layers, batch {sizes.batch}, '
               f'hidden {sizes.units}, {sizes.words} words, {sizes.source} + '
               f'{sizes.target} steps, SGD'),
      source='HDP (Mirhoseini et al., ICLR 2018); Bahdanau et al. 2015',
      paper_ops=0, num_devices=sizes.layers, build=functools.partial(
          build, sizes), optimizer=lambda: optimizers.ClippedOptimizer(
              tf1.train.GradientDescentOptimizer(1.), norm=5.),
      expert=functools.partial(experts.stage_per_device,
                               joined=gnmt.joined_stages(sizes.layers)))


WORKLOADS = (
    *(_workload(f'nmt-{n}', gnmt.GnmtSizes(n, source=70, target=70, block=14))
      for n in (2, 4, 8)),
    *(_workload(f'nmt-{n}@tiny', gnmt.GnmtSizes(n, 4, 16, 20, 2, 2, 2, .1))
      for n in (2, 4, 8)),
)
