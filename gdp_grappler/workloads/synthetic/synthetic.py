"""Draws problems: a random training graph, a cluster and a placement that fits.

A single generator of random numbers decides everything, so that a seed
determines a problem. Costs are those of the roofline, as for any other graph.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.placers import step as step_lib
from gdp_grappler.workloads.synthetic import builder as builder_lib
from gdp_grappler.workloads.synthetic import clusters
from gdp_grappler.workloads.synthetic import families
from gdp_grappler.workloads.synthetic import gradients
from gdp_grappler.workloads.synthetic import planting

MIXTURE = 'mixture'
ALL_FAMILIES = (*families.FAMILIES, MIXTURE)
_MOST_PARTS = 4  # Parts of a mixture of families.
_CLASSES = 16, 8192  # Range of the number of classes.
_BATCH = 8, 256  # Range of the examples per step.


@dataclasses.dataclass(frozen=True)
class Config:
  """Ranges of the problems that are drawn.

  Attributes:
    ops: Least and most ops, approximately. The logarithm is uniformly
      distributed.
    accelerators: Least and most cards of a cluster, 2 to 16.
    families: Some of `ALL_FAMILIES`.
    tight: Share of the problems whose memories are nearly full.
    fullest: Largest share of a memory that is in use at the peak, at most 1.
  """

  ops: tuple[int, int] = (100, 20_000)
  accelerators: tuple[int, int] = (2, 16)
  families: tuple[str, ...] = ALL_FAMILIES
  tight: float = .3
  fullest: float = .95

  def __post_init__(self) -> None:
    low, high = self.accelerators
    if not 2 <= low <= high <= clusters.MOST:
      raise ValueError(f'accelerators is {self.accelerators}; give 2 to '
                       f'{clusters.MOST}.')
    if not 1 <= self.ops[0] <= self.ops[1]:
      raise ValueError(f'ops is {self.ops}; give fewest and most, from 1 on.')
    if not 0 < self.fullest <= 1:
      raise ValueError(f'fullest is {self.fullest}; give a share up to 1.')
    unknown = set(self.families) - set(ALL_FAMILIES)
    if unknown or not self.families:
      raise ValueError(f'families is {self.families}; give some of '
                       f'{", ".join(ALL_FAMILIES)}.')


@dataclasses.dataclass(frozen=True, eq=False)
class Drawn:
  """A problem and one solution.

  Attributes:
    family: Family of the graph.
    graph: N ops.
    cluster: Cluster for the ops.
    planted: A placement that keeps all rules and fits all memories.
  """

  family: str
  graph: op_graph.OpGraph
  cluster: cluster_lib.Cluster
  planted: placement_lib.Placement

  @property
  def step(self) -> step_lib.Step:
    """The problem in the form that placers take."""
    return step_lib.Step(self.graph, self.cluster)


def draw(rng: np.random.Generator, config: Config = Config()) -> Drawn:
  """Draws a problem; equal states of the generator give equal problems."""
  family = str(rng.choice(config.families))
  ops = builder_lib.between(rng, *config.ops)
  graph, stages = draw_graph(rng, family, ops)
  count = int(rng.integers(config.accelerators[0], config.accelerators[1] + 1))
  # In half of all cases the number of cards is rounded down to a power of two.
  if rng.random() < .5:
    count = max(1 << (count.bit_length() - 1), config.accelerators[0])
  cluster = clusters.draw(rng, count)
  devices = planting.devices(rng, graph, stages, cluster)
  fullness = (rng.uniform(.7, 1.) if rng.random() < config.tight else
              rng.uniform(.05, .6)) * config.fullest
  cluster = planting.fitted(graph, cluster, devices, float(fullness))
  return Drawn(family, graph, cluster,
               placement_lib.Placement(devices, cluster))


def draw_graph(rng: np.random.Generator, family: str,
               ops: float) -> tuple[op_graph.OpGraph, np.ndarray]:
  """Draws a training graph.

  Args:
    rng: Generator of all random numbers of the graph.
    family: One of `ALL_FAMILIES`.
    ops: Approximate number of ops.

  Returns:
    The graph and the stages of its N ops, int [N], numbered from the input.
  """
  b = builder_lib.Builder(rng)
  rows = builder_lib.rounded(builder_lib.between(rng, *_BATCH))
  classes = builder_lib.rounded(builder_lib.between(rng, *_CLASSES))
  x, labels = _inputs(b, rows)
  parts = (families.parts_of(rng, _MOST_PARTS)
           if family == MIXTURE else [family])
  for number, part in enumerate(parts):
    build = families.FAMILIES[part][0]
    with b.scope(f'part_{number}' if len(parts) > 1 else 'model'):
      x = build(b, x, families.units_for(part, ops / len(parts)))
  with b.scope('loss'):
    logits = b.dense(x, classes)
    losses = b.one('SoftmaxCrossEntropyWithLogits', (logits, labels),
                   (logits.rows, 1), 6. * logits.elements)
    loss = b.one('Mean', (losses,), (1, 1))
  gradients.train(b, loss,
                  optimizer=str(rng.choice(list(gradients.OPTIMIZERS))),
                  clips=bool(rng.random() < .3),
                  details=float(rng.choice((0., .3, 1.))))
  return b.build(f'synthetic_{family}')


def _inputs(b: builder_lib.Builder,
            rows: int) -> tuple[builder_lib.Tensor, builder_lib.Tensor]:
  """Adds the features of a batch, given or looked up, and the labels."""
  columns = builder_lib.rounded(builder_lib.between(b.rng, 16, 1024))
  with b.scope('input'):
    given, labels = b.add('IteratorGetNext', (), (rows, columns), (rows, 1),
                          flops=0., on_gpu=False)
    if b.rng.random() < .5:
      return given, labels
    table = b.variable(
        builder_lib.rounded(builder_lib.between(b.rng, 1e3, 3e4)), columns)
    return b.one('GatherV2', (table, labels), given.shape), labels
