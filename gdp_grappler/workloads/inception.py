"""Inception-V3 for ImageNet.

Szegedy et al., arXiv 1512.00567, table 1 and sections 4 to 8, with layer widths
of the TensorFlow code that was published with it. GDP's appendix has a batch of
64 and 24,713 ops. The training is that of Szegedy et al.: RMSProp with
momentum, gradients clipped to a norm of 2, label smoothing, an auxiliary
classifier, moving averages of all weights, and their code's weight decay.

The following choices are ours, and determine the number of ops: batch norm and
RMSProp are elementary operations, RMSProp is centered, gradients are clipped
one by one, batch norm has factors and debiased statistics. With fused RMSProp,
one norm for all gradients, no factors and plain averages, the graph has 8,100
ops.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import tensorflow as tf

from gdp_grappler.workloads import experts
from gdp_grappler.workloads import layers
from gdp_grappler.workloads import optimizers
from gdp_grappler.workloads import workload

tf1 = tf.compat.v1
_DECAY = 4e-5  # Weight of the L2 loss of the kernels.
_AUXILIARY_WEIGHT = .4  # Weight of the auxiliary classifier's loss.
_SMOOTHING = .1  # Label smoothing.
# One letter per module: capitals for figures 5, 6 and 7 of the paper, small
# letters for the two modules that halve the size (figure 10).
_MODULES = 'AAAaBBBBbCC'


@dataclasses.dataclass(frozen=True)
class InceptionConfig:
  """Sizes of an Inception network.

  Attributes:
    modules: One letter per module, as in `_MODULES`.
    batch: Number of images.
    size: Height and width of the images.
    share: Share of the published layer widths.
    classes: Number of classes of images.
    auxiliary: Whether there is a classifier after the last B.
  """

  modules: str = _MODULES
  batch: int = 32
  size: int = 299
  share: float = 1.
  classes: int = 1000
  auxiliary: bool = True


def build(config: InceptionConfig) -> tf.Tensor:
  """Returns the loss. Convolutions of the stem and modules are stages."""
  with tf.name_scope('stage0'):
    x, labels = layers.images(config.batch, config.size)
  net = _Network(config)
  x = net.stem(x)
  losses = []
  inner = {'A': iter((32, 64, 64)), 'B': iter((128, 160, 160, 192))}
  for place, letter in enumerate(config.modules):
    with net.next_stage():
      x = _MODULE_OF[letter](net, x, next(inner.get(letter, iter(())), 0))
      if config.auxiliary and place == config.modules.rfind('B'):
        losses.append(
            _AUXILIARY_WEIGHT
            * layers.cross_entropy(net.auxiliary(x), labels, _SMOOTHING))
  with net.next_stage():
    x = layers.dropout(tf.reduce_mean(x, [1, 2]), .2)
    losses.append(
        layers.cross_entropy(
            layers.dense(x, 'classifier', config.classes, rate=_DECAY), labels,
            _SMOOTHING))
    return layers.total_loss(losses)


class _Network:
  """Builds parts of the network, numbers stages and scales widths."""

  def __init__(self, config: InceptionConfig) -> None:
    self._config = config
    self._stage = 0

  def next_stage(self) -> Any:
    self._stage += 1
    return layers.stage(self._stage - 1)

  def stem(self, x: tf.Tensor) -> tf.Tensor:
    """Applies 5 convolutions and 2 poolings: [B, 299, 299, 3] to 35 x 35."""
    for name, size, channels, stride, padding, pool in (('1', 3, 32, 2, 'VALID',
                                                         False),
                                                        ('2', 3, 32, 1, 'VALID',
                                                         False), ('3', 3, 64, 1,
                                                                  'SAME', True),
                                                        ('4', 1, 80, 1, 'VALID',
                                                         False), ('5', 3, 192,
                                                                  1, 'VALID',
                                                                  True)):
      with self.next_stage():
        x = self.conv(x, f'stem{name}', channels, size, size, stride, padding)
        if pool:
          x = tf.nn.max_pool2d(x, 3, 2, 'VALID')
    return x

  def conv(self, x: tf.Tensor, name: str, channels: int, height: int = 1,
           width: int = 1, stride: int = 1, padding: str = 'SAME') -> tf.Tensor:
    """Applies convolution, batch norm and rectifier."""
    x = layers.convolution(x, name, (height, width),
                           max(4, round(channels * self._config.share)), stride,
                           padding, _DECAY)
    x = layers.batch_norm(x, f'{name}_norm', .9997, debias=True)
    return tf.nn.relu(x)

  def chain(self, x: tf.Tensor, name: str, *convolutions:
            tuple[int] | tuple[int, int, int]) -> tf.Tensor:
    """Applies convolutions in turn; each is (channels, height, width)."""
    for number, convolution in enumerate(convolutions):
      x = self.conv(x, f'{name}{number}', *convolution)
    return x

  def auxiliary(self, x: tf.Tensor) -> tf.Tensor:
    """Returns the logits of the auxiliary classifier (section 4)."""
    with tf1.variable_scope('auxiliary'):
      x = tf.nn.avg_pool2d(x, 5, 3, 'VALID')
      x = self.conv(x, 'reduce', 128)
      height, width = x.shape[1:3]
      x = self.conv(x, 'full', 768, height, width, 1, 'VALID')
      return layers.dense(tf.squeeze(x, [1, 2]), 'classifier',
                          self._config.classes, rate=_DECAY)


def _pooled(x: tf.Tensor) -> tf.Tensor:
  return tf.nn.avg_pool2d(x, 3, 1, 'SAME')


def _module_a(net: _Network, x: tf.Tensor, pool_channels: int) -> tf.Tensor:
  return tf.concat([
      net.chain(x, 'one', (64,)),
      net.chain(x, 'five', (48,), (64, 5, 5)),
      net.chain(x, 'double', (64,), (96, 3, 3), (96, 3, 3)),
      net.chain(_pooled(x), 'pool', (pool_channels,))
  ], 3)


def _reduction_a(net: _Network, x: tf.Tensor, _: int) -> tf.Tensor:
  double = net.chain(x, 'double', (64,), (96, 3, 3))
  return tf.concat([
      net.conv(x, 'three', 384, 3, 3, 2, 'VALID'),
      net.conv(double, 'double2', 96, 3, 3, 2, 'VALID'),
      tf.nn.max_pool2d(x, 3, 2, 'VALID')
  ], 3)


def _module_b(net: _Network, x: tf.Tensor, width: int) -> tf.Tensor:
  return tf.concat([
      net.chain(x, 'one', (192,)),
      net.chain(x, 'seven', (width,), (width, 1, 7), (192, 7, 1)),
      net.chain(x, 'double', (width,), (width, 7, 1), (width, 1, 7),
                (width, 7, 1), (192, 1, 7)),
      net.chain(_pooled(x), 'pool', (192,))
  ], 3)


def _reduction_b(net: _Network, x: tf.Tensor, _: int) -> tf.Tensor:
  three = net.chain(x, 'three', (192,))
  seven = net.chain(x, 'seven', (192,), (192, 1, 7), (192, 7, 1))
  return tf.concat([
      net.conv(three, 'three1', 320, 3, 3, 2, 'VALID'),
      net.conv(seven, 'seven3', 192, 3, 3, 2, 'VALID'),
      tf.nn.max_pool2d(x, 3, 2, 'VALID')
  ], 3)


def _module_c(net: _Network, x: tf.Tensor, _: int) -> tf.Tensor:
  three = net.chain(x, 'three', (384,))
  double = net.chain(x, 'double', (448,), (384, 3, 3))
  return tf.concat([
      net.chain(x, 'one', (320,)),
      net.conv(three, 'wide', 384, 1, 3),
      net.conv(three, 'high', 384, 3, 1),
      net.conv(double, 'double_wide', 384, 1, 3),
      net.conv(double, 'double_high', 384, 3, 1),
      net.chain(_pooled(x), 'pool', (192,))
  ], 3)


_MODULE_OF = {
    'A': _module_a, 'a': _reduction_a, 'B': _module_b, 'b': _reduction_b,
    'C': _module_c
}


def _optimizer() -> optimizers.TrainingStep:
  return optimizers.TrainingStep(optimizers.RmsProp(.045),
                                 optimizers.clip_each(2.), average_decay=.9999)


def _tiny_optimizer() -> optimizers.TrainingStep:
  return optimizers.TrainingStep(tf1.train.MomentumOptimizer(.02, .9))


def _workload(batch: int) -> workload.Workload:
  return workload.Workload(
      name=f'inception-v3-b{batch}',
      setting=(f'batch {batch}, images of 299, auxiliary head, unfused batch '
               'norm and RMSProp, weight decay, moving averages, clipping'),
      source='GDP (Zhou et al., arXiv 1910.01578), appendix', paper_ops=24_713,
      num_devices=2, build=functools.partial(build,
                                             InceptionConfig(batch=batch)),
      optimizer=_optimizer, expert=experts.equal_blocks)


def _tiny(batch: int) -> workload.Workload:
  return dataclasses.replace(
      _workload(batch), name=f'inception-v3-b{batch}@tiny',
      setting=(f'stem and one module, batch {batch // 8}, images of 75, '
               'momentum'), paper_ops=0, build=functools.partial(
                   build,
                   InceptionConfig('A', batch // 8, 75, 1 / 16, 10,
                                   auxiliary=False)), optimizer=_tiny_optimizer)


WORKLOADS: tuple[workload.Workload, ...] = tuple(
    make(batch) for batch in (32, 64) for make in (_workload, _tiny))
