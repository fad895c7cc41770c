"""AmoebaNet-D (18, 208) for ImageNet.

The cells are those of AmoebaNet-D (Real et al., arXiv 1802.01548, appendix), in
the stack of NASNet's ImageNet networks (figure 2 there). Huang et al. (GPipe,
arXiv 1811.06965) train a network of 18 normal cells and 208 filters, with 82
million weights, on images of 224. The batch of 64 is GDP's. Batch norm is fused
and keeps moving averages. The optimizer is momentum, without other
regularization. The auxiliary head is left out, as in GPipe.
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


@dataclasses.dataclass(frozen=True)
class Cell:
  """A cell: five sums of two operations each.

  Attributes:
    operations: Ten pairs of a state and an operation on it. State 0 is the
      output of the cell before the last one, and state 1 that of the last one.
      Each further state is the sum of two operations.
    outputs: States that are concatenated to the output of the cell.
  """

  operations: Sequence[tuple[int, str]]
  outputs: Sequence[int]


# Outputs as in the authors' code for training. The figure has (4, 5, 6) for
# both.
NORMAL = Cell(((1, 'conv_1x1'), (1, 'max_3x3'), (1, 'none'),
               (0, 'conv_1x7_7x1'), (0, 'conv_1x1'), (0, 'conv_1x7_7x1'),
               (2, 'max_3x3'), (2, 'none'), (1, 'avg_3x3'), (5, 'conv_1x1')),
              (0, 3, 4, 6))
REDUCTION = Cell(((0, 'max_2x2'), (0, 'max_3x3'), (2, 'none'), (1, 'conv_3x3'),
                  (2, 'conv_1x7_7x1'), (2, 'max_3x3'), (3, 'none'),
                  (1, 'max_2x2'), (2, 'avg_3x3'), (3, 'conv_1x1')), (4, 5, 6))
# Filters between the convolutions that narrow and widen.
_INNER = {'conv_3x3': ((3, 3),), 'conv_1x7_7x1': ((1, 7), (7, 1))}
# The inner convolutions have this many times fewer filters.
_NARROWING = 4


@dataclasses.dataclass(frozen=True)
class AmoebaNetConfig:
  """Sizes of an AmoebaNet.

  Attributes:
    stem_cells: Reduction cells before the first group.
    groups: Groups of normal cells, with a reduction cell between them.
    normal_cells: Normal cells in each group.
    filters: Filters of the first group. Each next group has twice as many. Each
      cell of the stem has half as many as the part after it.
    batch: Number of images.
    size: Height and width of the images.
    classes: Number of classes of images.
  """

  stem_cells: int = 2
  groups: int = 3
  normal_cells: int = 6
  filters: int = 208
  batch: int = 64
  size: int = 224
  classes: int = 1000


def build(config: AmoebaNetConfig) -> tf.Tensor:
  """Returns the loss. The first convolution and every cell are stages."""
  with tf.name_scope('stage0'):
    x, labels = layers.images(config.batch, config.size)
  with layers.stage(0):
    x = layers.convolution(x, 'stem', (3, 3),
                           config.filters >> config.stem_cells, 2)
    x = tf.nn.relu(layers.batch_norm(x, 'stem_norm', fused=True))
    before = None
  plan = _plan(config)
  for number, (cell, filters, stride) in enumerate(plan, 1):
    with layers.stage(number):
      before, x = x, _cell(x if before is None else before, x, cell, filters,
                           stride)
  with layers.stage(len(plan) + 1):
    x = tf.reduce_mean(x, [1, 2])
    return layers.cross_entropy(layers.dense(x, 'classifier', config.classes),
                                labels)


def _plan(config: AmoebaNetConfig) -> list[tuple[Cell, int, int]]:
  """Returns (cell, filters, stride) of each cell."""
  plan = [(REDUCTION, config.filters >> (config.stem_cells - cell), 2)
          for cell in range(config.stem_cells)]
  for group in range(config.groups):
    filters = config.filters << group
    if group:
      plan.append((REDUCTION, filters, 2))
    plan += [(NORMAL, filters, 1)] * config.normal_cells
  return plan


def _cell(before: tf.Tensor, last: tf.Tensor, cell: Cell, filters: int,
          stride: int) -> tf.Tensor:
  """Returns the output of a cell for the outputs of the two cells before.

  Each reader of an output rectifies it first. So this is done once, in the cell
  that makes the output. Otherwise Grappler would merge equal ops of two cells.
  """
  if before.shape[1] != last.shape[1]:
    before = tf.nn.relu(_halved(before, 'match', filters))
  states = [
      _convolved(before, 'before', filters),
      _convolved(last, 'last', filters)
  ]
  for number in range(0, len(cell.operations), 2):
    states.append(
        tf.add_n([
            _operation(states[state], f'{kind}_{number + side}', kind, filters,
                       stride if state < 2 else 1)
            for side, (state,
                       kind) in enumerate(cell.operations[number:number + 2])
        ]))
  return tf.nn.relu(tf.concat([states[state] for state in cell.outputs], 3))


def _operation(x: tf.Tensor, name: str, kind: str, filters: int,
               stride: int) -> tf.Tensor:
  if kind == 'none':
    return _halved(tf.nn.relu(x), name, filters) if stride > 1 else x
  if kind.startswith('max'):
    return tf.nn.max_pool2d(x, int(kind[-1]), stride, 'SAME')
  if kind.startswith('avg'):
    return tf.nn.avg_pool2d(x, int(kind[-1]), stride, 'SAME')
  if kind == 'conv_1x1':
    return _conv(x, name, filters, (1, 1), stride)
  with tf1.variable_scope(name):
    x = _conv(x, 'narrow', filters // _NARROWING)
    for number, size in enumerate(_INNER[kind]):
      x = _conv(x, f'inner{number}', filters // _NARROWING, size,
                stride if not number else 1)
    return _conv(x, 'widen', filters)


def _halved(x: tf.Tensor, name: str, filters: int) -> tf.Tensor:
  """Halves height and width without dropping every other pixel.

  Two convolutions read the pixels of even and of odd coordinates.
  """
  with tf1.variable_scope(name):
    shifted = tf.pad(x[:, 1:, 1:], [[0, 0], [0, 1], [0, 1], [0, 0]])
    halves = [
        layers.convolution(side, f'half{number}', (1, 1), filters // 2, 2)
        for number, side in enumerate((x, shifted))
    ]
    return layers.batch_norm(tf.concat(halves, 3), 'norm', fused=True)


def _conv(x: tf.Tensor, name: str, filters: int, size: Sequence[int] = (1, 1),
          stride: int = 1) -> tf.Tensor:
  """Applies a rectifier, a convolution and batch norm."""
  return _convolved(tf.nn.relu(x), name, filters, size, stride)


def _convolved(x: tf.Tensor, name: str, filters: int,
               size: Sequence[int] = (1, 1), stride: int = 1) -> tf.Tensor:
  """Applies a convolution and batch norm."""
  x = layers.convolution(x, name, size, filters, stride)
  return layers.batch_norm(x, f'{name}_norm', fused=True)


def _optimizer(rate: float) -> optimizers.TrainingStep:
  return optimizers.TrainingStep(tf1.train.MomentumOptimizer(rate, .9))


_FULL = workload.Workload(
    name='amoebanet',
    setting=('AmoebaNet-D (18, 208), batch 64, images of 224, fused batch '
             'norm, momentum'),
    source='GDP (Zhou et al., arXiv 1910.01578), appendix', paper_ops=9430,
    num_devices=4, build=functools.partial(build, AmoebaNetConfig()),
    optimizer=functools.partial(_optimizer, .1), expert=experts.equal_blocks)

WORKLOADS: tuple[workload.Workload, ...] = (
    _FULL,
    dataclasses.replace(
        _FULL, name='amoebanet@tiny',
        setting='one cell of each kind, 16 filters, batch 4, images of 32',
        paper_ops=0,
        build=functools.partial(build, AmoebaNetConfig(1, 1, 1, 16, 4, 32, 10)),
        optimizer=functools.partial(_optimizer, .02)))
