"""WaveNet, a model of raw audio.

van den Oord et al., arXiv 1609.03499, sections 2.1 to 2.4: causal convolutions
with a filter of 2 whose dilation doubles from 1 to 256 in each stack, gated
activations, residual and skip connections, and a softmax over 256 mu-law
levels. GDP's appendix has a batch of 64, nine layers per stack and 2048
samples, which is the receptive field of four stacks. So '2x18' in its tables
are two stacks with 18 layers in all, and '4x36' four with 36. Their numbers of
ops are not given. The 4,374 and 8,516 ops belong to five stacks (45 layers) and
ten (90).

Our choices: 128 residual and 128 skip channels, Adam, and as many GPUs as the
appendix's two models need. A dilated convolution is a dense one between two
transpositions, because TensorFlow can train this on any device.

The skip connections of a stack are added up and get one bias, which is
equivalent to a bias for each of them. The bias also keeps the sums of stacks
apart, so that a stack sends one tensor to the output. Otherwise Grappler would
turn the sum over all layers into one op, to which every layer would send its
own tensor.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from gdp_grappler.workloads import experts
from gdp_grappler.workloads import layers
from gdp_grappler.workloads import workload

_FILTER = 2  # Time steps that a causal convolution reads.


@dataclasses.dataclass(frozen=True)
class WaveNetConfig:
  """Sizes of a WaveNet.

  Attributes:
    stacks: Number of stacks of `layers_per_stack` layers each.
    layers_per_stack: Layers in a stack. The last one's dilation divides
      `samples`.
    batch: Number of sequences.
    samples: Samples of each sequence.
    channels: Channels of the residual connections and inside a layer.
    skip_channels: Channels of the skip connections.
    levels: Levels of a sample.
  """

  stacks: int
  layers_per_stack: int = 9
  batch: int = 64
  samples: int = 2048
  channels: int = 128
  skip_channels: int = 128
  levels: int = 256


def build(config: WaveNetConfig) -> tf.Tensor:
  """Returns the loss of predicting each next sample; each layer is a stage."""
  with tf.name_scope('stage0'):
    audio = tf1.placeholder(tf.int32, [config.batch, config.samples + 1],
                            'audio')
  with layers.stage(0):
    x = tf.one_hot(audio[:, :-1], config.levels)
    x = _from_rows(_convolved(_to_rows(x, 1), 'input', config.channels))
  sums, skips = [], []
  depth = config.stacks * config.layers_per_stack
  for layer in range(depth):
    with layers.stage(layer + 1):
      place = layer % config.layers_per_stack
      x, skip = _layer(x, 2**place, config, last=layer == depth - 1)
      skips.append(skip)
      if place == config.layers_per_stack - 1:
        sums.append(_biased(tf.add_n(skips), 'skips'))
        skips = []
  with layers.stage(depth + 1):
    y = layers.dense(tf.nn.relu(tf.add_n(sums)), 'hidden', config.skip_channels)
    logits = layers.dense(tf.nn.relu(y), 'levels', config.levels)
    return layers.cross_entropy(logits, audio[:, 1:])


def _layer(x: tf.Tensor, dilation: int, config: WaveNetConfig,
           last: bool) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns the inputs of the next layer and of the output (figure 4).

  Args:
    x: [B, T, channels], input.
    dilation: Distance of the two samples that a filter sees.
    config: Sizes of the model.
    last: Whether no layer comes after. Then the first result is `x`.
  """
  rows = _to_rows(x, dilation)
  gated = (tf.tanh(_convolved(rows, 'filter', config.channels))
           * tf.sigmoid(_convolved(rows, 'gate', config.channels)))
  gated = _from_rows(gated)
  skip = layers.dense(gated, 'skip', config.skip_channels, bias=False)
  if last:
    return x, skip
  return x + layers.dense(gated, 'residual', config.channels), skip


def _to_rows(x: tf.Tensor, dilation: int) -> tf.Tensor:
  """Reshapes [B, T, C] to [B, dilation, 1 + T / dilation, C].

  A row has every `dilation`-th sample, after a zero for the past.
  """
  x = tf.pad(x, [[0, 0], [(_FILTER - 1) * dilation, 0], [0, 0]])
  x = tf.reshape(x, [x.shape[0], -1, dilation, x.shape[-1]])
  return tf.transpose(x, [0, 2, 1, 3])


def _from_rows(x: tf.Tensor) -> tf.Tensor:
  """Reshapes [B, dilation, T / dilation, C] to [B, T, C]."""
  x = tf.transpose(x, [0, 2, 1, 3])
  return tf.reshape(x, [x.shape[0], -1, x.shape[-1]])


def _convolved(x: tf.Tensor, name: str, channels: int) -> tf.Tensor:
  """Convolves [B, H, 1 + W, in] to [B, H, W, channels], along the rows."""
  return _biased(
      layers.convolution(x, name, (1, _FILTER), channels, padding='VALID'),
      name)


def _biased(x: tf.Tensor, name: str) -> tf.Tensor:
  with tf1.variable_scope(name):
    return tf.nn.bias_add(
        x, layers.weights('bias', [x.shape[-1]], tf1.zeros_initializer()))


class _Adam(tf1.train.AdamOptimizer):
  """Adam on gradients that are summed on the devices of their layers.

  By default TensorFlow co-locates a sum with the op of its first term. Along
  residual connections this is the sum of the next layer, so all sums would have
  to share a device.
  """

  def compute_gradients(self, *args: tf.Tensor,
                        **kwargs: Any) -> list[tuple[tf.Tensor, tf.Variable]]:
    """See the base class."""
    kwargs['aggregation_method'] = tf.AggregationMethod.EXPERIMENTAL_TREE
    return super().compute_gradients(*args, **kwargs)


def _workload(name: str, stacks: int, num_devices: int,
              paper_ops: int) -> workload.Workload:
  return workload.Workload(
      name=f'wavenet-{name}',
      setting=(f'{stacks} stacks of 9 layers, batch 64, 2048 samples, '
               '128 residual and 128 skip channels, Adam'),
      source='GDP (Zhou et al., arXiv 1910.01578), appendix',
      paper_ops=paper_ops, num_devices=num_devices,
      build=functools.partial(build, WaveNetConfig(stacks)),
      optimizer=functools.partial(_Adam, 1e-3), expert=experts.equal_blocks)


def _tiny(name: str, stacks: int, num_devices: int,
          paper_ops: int) -> workload.Workload:
  full = _workload(name, stacks, num_devices, paper_ops)
  return dataclasses.replace(
      full, name=f'{full.name}@tiny',
      setting=f'{stacks} stacks of 1 layer, batch 4, 32 samples, 8 channels',
      paper_ops=0,
      build=functools.partial(build, WaveNetConfig(stacks, 1, 4, 32, 8, 16,
                                                   16)),
      optimizer=functools.partial(_Adam, 1e-2))


# Name, stacks, devices and the paper's number of ops.
_SIZES = (('2x18', 2, 2, 0), ('4x36', 4, 4, 0), ('5-stack', 5, 4, 4374),
          ('10-stack', 10, 8, 8516))

WORKLOADS: tuple[workload.Workload, ...] = tuple(
    make(*size) for size in _SIZES for make in (_workload, _tiny))
