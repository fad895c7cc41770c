"""Compares m-SCT with favourite children by matching and by linear programs.

Run it from the repository with `python -m benchmarks.favourite_children`. Half
of the graphs are random, half have layers. They are placed on 4 and 8 P100s.
`communication` is the time to send the mean tensor, over the time of the mean
op. The program compares two ways to find favourite children: matching, and the
linear program of Hanen and Munier, which HiGHS solves. Both ways make the same
proposals. The table has the simulated step by matching over the step by the
program: less than 1 means that matching is better. Seconds are processor
seconds.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import sys
import time
from typing import Any

import numpy as np

from benchmarks import tables
from gdp_grappler import progress
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.graph import op_graph
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.list_scheduling import bundling
from gdp_grappler.placers.list_scheduling import favourite_children
from gdp_grappler.placers.list_scheduling import m_sct
from gdp_grappler.placers.list_scheduling import proposals
from tests.helpers import clusters
from tests.helpers import graphs

_Row = dict[str, Any]
_WIDTHS = 4, 8, 32, 64  # Ops of a layer, in turn.
_WINDOW = 4000  # Tasks of a linear program.
_OP_S = 1e-3  # Median seconds of an op of a graph in layers.
_TENSOR_BYTES = 4e6  # Median bytes of a tensor of such a graph.


class _ByProgram(m_sct.MSctPlacer):
  """Makes all our proposals, with the favourite children of the papers.

  It places one graph.
  """

  def __init__(self) -> None:
    super().__init__()
    self._solved: dict[proposals.Bundles, np.ndarray] = {}

  def _favourites(self, shared: proposals.Proposals,
                  bundles: proposals.Bundles) -> np.ndarray:
    # Co-placement changes no task.
    key = dataclasses.replace(bundles, parts=None, transfer_grain=None)
    if key not in self._solved:
      tasks = shared.tasks(key)
      self._solved[key] = favourite_children.solve(tasks,
                                                   bundling.work_s(tasks),
                                                   shared.link, _WINDOW)[None]
    return self._solved[key]


def _layered_graph(num_ops: int, width: int,
                   seed: int = 0) -> tuple[op_graph.OpGraph, np.ndarray]:
  """Returns a graph of layers, and the seconds of its ops, float64 [N].

  Args:
    num_ops: N.
    width: Ops of a layer.
    seed: Seed of all random numbers.
  """
  rng = np.random.default_rng(seed)
  consumers = np.repeat(np.arange(num_ops), 1 + rng.poisson(1., num_ops))
  producers = (consumers // width - 1) * width + rng.integers(
      0, width, len(consumers))
  edges = np.unique(
      np.stack([producers, consumers], axis=1)[producers >= 0], axis=0)
  zeros = np.zeros(num_ops)
  graph = op_graph.OpGraph(
      name=f'layers of {width}', names=tuple(f'op{i}' for i in range(num_ops)),
      op_types=('MatMul',) * num_ops, edges=edges, edge_tensors=edges[:, 0],
      tensor_ops=np.arange(num_ops),
      tensor_bytes=rng.lognormal(0, 1, num_ops) * _TENSOR_BYTES, flops=zeros,
      io_bytes=zeros, param_bytes=zeros, groups=np.arange(num_ops),
      allowed_types=np.ones(
          (num_ops,
           2)), pins=('',) * num_ops, user_pins=zeros, devices=('',) * num_ops)
  return graph, rng.lognormal(0, 1, num_ops) * _OP_S


def _with_tensors_scaled(graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
                         op_s: np.ndarray, ratio: float) -> op_graph.OpGraph:
  """Returns the graph with tensors scaled to a ratio of sending and computing.

  Args:
    graph: N ops.
    cluster: Cluster whose links send the tensors.
    op_s: Seconds of the ops [N].
    ratio: Seconds to send the mean tensor over seconds of the mean op.
  """
  latency_s, s_per_byte = bundling.mean_link(cluster,
                                             np.array(cluster.accelerators))
  size = (ratio * op_s.mean() - latency_s) / s_per_byte
  return graph.replace(tensor_bytes=graph.tensor_bytes
                       * (size / graph.tensor_bytes.mean()))


def _graph(num_ops: int, seed: int) -> tuple[op_graph.OpGraph, np.ndarray]:
  """A graph, and the seconds of its ops [N]."""
  if seed % 2:
    width = _WIDTHS[seed // 2 % len(_WIDTHS)]
    return _layered_graph(num_ops, width, seed)
  graph = graphs.random_graph(seed, num_ops, fan_in=1.8, window=20)
  return graph, np.random.default_rng(seed).lognormal(0, 1, num_ops) * 1e-3


def _placed(placer: placer_lib.Placer, graph: op_graph.OpGraph,
            cluster: cluster_lib.Cluster,
            op_s: np.ndarray) -> tuple[float, float]:
  """Returns the simulated step, and processor seconds."""
  problem = placer_lib.Problem(
      graph, cluster, simulator.Simulator(cluster, clusters.FixedCosts(op_s)))
  busy = time.process_time()
  placement = placer.place(problem)
  busy = time.process_time() - busy
  return problem.evaluator.evaluate(graph, placement).step_time_s, busy


def _row(num_ops: int, communication: float, count: int) -> _Row:
  ratios, seconds = [], []
  for seed in range(count):
    graph, op_s = _graph(num_ops, seed)
    cluster = presets.preset(f'{4 + 4 * (seed // 2 % 2)}xP100')
    graph = _with_tensors_scaled(graph, cluster, op_s, communication)
    found = [
        _placed(placer, graph, cluster, op_s)
        for placer in (m_sct.MSctPlacer(), _ByProgram())
    ]
    ratios.append(found[0][0] / found[1][0])
    seconds.append([busy for _, busy in found])
  own, program = np.mean(seconds, axis=0)
  return {
      'ops': num_ops, 'communication': communication,
      'mean': tables.mean(ratios), 'best': min(ratios), 'worst': max(ratios),
      'matching_s': own, 'program_s': program
  }


def _cells(row: _Row) -> list[str]:
  return [
      f'{row["ops"]:,}', f'{row["communication"]:g}',
      *(f'{row[key]:.3f}' for key in ('mean', 'best', 'worst')),
      *(f'{row[key]:.2f}' for key in ('matching_s', 'program_s'))
  ]


def _table(arguments: argparse.Namespace) -> tables.Table:
  rows = progress.of_each(
      'placing',
      list(itertools.product(arguments.sizes, arguments.communication)),
      lambda case: _row(*case, arguments.graphs))
  return tables.Table('steps by matching over by programs, simulated',
                      ('ops', 'communication', 'mean', 'best', 'worst',
                       'matching s', 'program s'),
                      [_cells(row) for row in rows], rows)


main = tables.program(
    'favourite_children', __doc__, 'Favourite children', _table,
    tables.option('--sizes', type=int, nargs='*', default=[300, 1000]),
    tables.option('--communication', type=float, nargs='*',
                  default=[.1, .5, 1., 5.]),
    tables.option('--graphs', type=int, default=32, help='of each'))

if __name__ == '__main__':
  sys.exit(main())
