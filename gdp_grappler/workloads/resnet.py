"""ResNet-50 for ImageNet.

He et al., arXiv 1512.03385, table 1 and section 3.4: momentum and weight decay
1e-4. HDP's table has neither batch nor number of ops, and its network is the
deeper one of 152 layers. We take 64 images, with which a simulated K40 needs
about the 1.18 s that HDP reports for one GPU. Batch norm is not fused and keeps
moving averages.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Sequence

import tensorflow as tf

from gdp_grappler.workloads import experts
from gdp_grappler.workloads import layers
from gdp_grappler.workloads import optimizers
from gdp_grappler.workloads import workload

tf1 = tf.compat.v1
_DECAY = 1e-4  # Weight of the L2 loss of the kernels (section 3.4).


@dataclasses.dataclass(frozen=True)
class ResNetConfig:
  """Sizes of a ResNet with bottleneck blocks."""

  blocks: Sequence[int] = (3, 4, 6, 3)
  batch: int = 64
  size: int = 224
  channels: int = 64
  classes: int = 1000


def build(config: ResNetConfig) -> tf.Tensor:
  """Returns the loss. The stem, every block and the classifier are stages."""
  with tf.name_scope('stage0'):
    x, labels = layers.images(config.batch, config.size)
  with layers.stage(0):
    x = tf.nn.relu(_normalized(x, 'stem', 7, config.channels, 2))
    x = tf.nn.max_pool2d(x, 3, 2, 'SAME')
  number = 1
  for group, count in enumerate(config.blocks):
    for block in range(count):
      with layers.stage(number):
        x = _block(x, config.channels << group, 2 if group and not block else 1)
      number += 1
  with layers.stage(number):
    logits = layers.dense(tf.reduce_mean(x, [1, 2]), 'classifier',
                          config.classes, rate=_DECAY)
    return layers.total_loss([layers.cross_entropy(logits, labels)])


def _block(x: tf.Tensor, channels: int, stride: int) -> tf.Tensor:
  """Adds three convolutions to their input (figure 5, right)."""
  y = tf.nn.relu(_normalized(x, 'reduce', 1, channels))
  y = tf.nn.relu(_normalized(y, 'middle', 3, channels, stride))
  y = _normalized(y, 'expand', 1, 4 * channels)
  if x.shape != y.shape:
    x = _normalized(x, 'project', 1, 4 * channels, stride)
  return tf.nn.relu(x + y)


def _normalized(x: tf.Tensor, name: str, size: int, channels: int,
                stride: int = 1) -> tf.Tensor:
  x = layers.convolution(x, name, (size, size), channels, stride, rate=_DECAY)
  return layers.batch_norm(x, f'{name}_norm', epsilon=1e-5)


def _optimizer(rate: float) -> optimizers.TrainingStep:
  return optimizers.TrainingStep(tf1.train.MomentumOptimizer(rate, .9))


_FULL = workload.Workload(
    name='resnet-50',
    setting=('batch 64, images of 224, unfused batch norm, momentum, weight '
             'decay'), source='HDP (Mirhoseini et al., ICLR 2018), table 1',
    paper_ops=0, num_devices=2, build=functools.partial(build, ResNetConfig()),
    optimizer=functools.partial(_optimizer, .1), expert=experts.single_device)

WORKLOADS: tuple[workload.Workload, ...] = (
    _FULL,
    dataclasses.replace(
        _FULL, name='resnet-50@tiny',
        setting='4 blocks, batch 4, images of 32, 8 channels',
        build=functools.partial(build, ResNetConfig(
            (1, 1, 1, 1), 4, 32, 8,
            10)), optimizer=functools.partial(_optimizer, .02)))
