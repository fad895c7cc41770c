"""RNNLM: a language model of LSTM layers, unrolled to a grid of cells.

Zaremba et al., arXiv 1409.2329, with the sizes of GDP's appendix (batch 64,
hidden size 2048), the 10,000 words of the Penn Treebank, dropout between the
layers, gradients clipped to norm 5, and gradient descent. The papers do not
contain the number of unrolled steps. With 60 steps, the graphs have 8,717,
17,247 and 34,307 ops as the pass gets them (GDP: 9,021 for 2 layers, and in
proportion for more). The softmax takes 10 steps at a time.
"""

from __future__ import annotations

import dataclasses
import functools

import tensorflow as tf

from gdp_grappler.workloads import experts
from gdp_grappler.workloads import optimizers
from gdp_grappler.workloads import recurrent
from gdp_grappler.workloads import workload as workload_lib

tf1 = tf.compat.v1


@dataclasses.dataclass(frozen=True)
class RnnlmSizes:
  """The sizes of a model.

  Attributes:
    layers: Number of LSTM layers.
    batch: Number of sentences.
    units: Width of embedding, cells and outputs.
    words: Size of the vocabulary.
    steps: Number of unrolled steps.
    block: Steps per product with the softmax matrix.
    dropout: Share of each layer's inputs that is zeroed.
  """

  layers: int
  batch: int = 64
  units: int = 2048
  words: int = 10_000
  steps: int = 60
  block: int = 10
  dropout: float = .5


def build(sizes: RnnlmSizes) -> tf.Tensor:
  """Returns the loss of predicting each next word.

  Layer k is stage k. The embedding is in the stage of the lowest layer, and the
  softmax is the last stage.
  """
  ids = tf1.placeholder(tf.int32, [sizes.steps + 1, sizes.batch], 'ids')
  outputs = recurrent.embedded(0, 'embedding', sizes.words, sizes.units,
                               ids[:-1])
  lstms = [
      recurrent.Lstm(k, 'lstm', sizes.units, sizes.units, sizes.batch)
      for k in range(sizes.layers)
  ]
  for t in range(sizes.steps):
    for lstm in lstms:
      outputs[t] = lstm.step(outputs[t], sizes.dropout)
  return recurrent.softmax_loss(sizes.layers, outputs, ids[1:], sizes.words,
                                sizes.block)


def _workload(name: str, sizes: RnnlmSizes,
              paper_ops: int) -> workload_lib.Workload:
  softmax_with_top = (*range(sizes.layers), sizes.layers - 1)
  return workload_lib.Workload(
      name=name,
      setting=(f'{sizes.layers} layers, batch {sizes.batch}, hidden '
               f'{sizes.units}, {sizes.words} words, {sizes.steps} steps, SGD'),
      source='GDP (arXiv 1910.01578) appendix; Zaremba et al. 2014',
      paper_ops=paper_ops, num_devices=sizes.layers, build=functools.partial(
          build, sizes), optimizer=lambda: optimizers.ClippedOptimizer(
              tf1.train.GradientDescentOptimizer(1.), norm=5.),
      expert=functools.partial(experts.stage_per_device,
                               joined=(softmax_with_top,)))


WORKLOADS = (
    *(_workload(f'rnnlm-{n}', RnnlmSizes(n), ops)
      for n, ops in ((2, 9_021), (4, 18_000), (8, 36_000))),
    *(_workload(f'rnnlm-{n}@tiny', RnnlmSizes(n, 4, 16, 20, 2, 2, .1), 0)
      for n in (2, 4, 8)),
)
