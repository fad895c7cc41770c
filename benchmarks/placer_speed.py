"""Prints how many seconds each placer takes, and what was aimed at.

Run it from the repository with `python -m benchmarks.placer_speed`. Graphs are
generated: layers of ops that take about a millisecond, each with two inputs on
average from the layer before, and tensors that take a third of a millisecond to
send, or what --communication says. The cluster is 8xP100. Times are wall-clock
and include everything that a placer does with a new graph, its evaluations as
well; processor time is in brackets.
"""

import argparse
import itertools
import time
from typing import Callable

import numpy as np

from gdp_grappler import progress
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.graph import op_graph
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.list_scheduling import bundling
from gdp_grappler.placers.list_scheduling import heft
from gdp_grappler.placers.list_scheduling import m_etf
from gdp_grappler.placers.list_scheduling import m_sct
from gdp_grappler.placers.list_scheduling import m_topo
from gdp_grappler.placers.simple import single_device
from gdp_grappler.reports import progress_line
from gdp_grappler.reports import tables
from tests.helpers import clusters

_PLACERS: dict[str, Callable[[], placer_lib.Placer]] = {
    'm_topo': m_topo.MTopoPlacer, 'm_etf': m_etf.MEtfPlacer,
    'm_sct': m_sct.MSctPlacer,
    'm_sct_published': lambda: m_sct.MSctPlacer(published=True),
    'heft': heft.HeftPlacer, 'single_device': single_device.SingleDevicePlacer
}
# Limit of the seconds on two cores, by placer and number of ops.
_TARGETS_S = {('m_etf', 83_000): 2, ('m_sct', 83_000): 20, ('m_etf', 50_000): 2,
              ('m_sct', 50_000): 5}
_OP_S = 1e-3
_TENSOR_BYTES = 4e6


def layered_graph(num_ops: int, width: int,
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


def communicating(graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
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


def _seconds(name: str, num_ops: int, width: int,
             communication: float | None) -> tuple[float, float]:
  """Wall-clock and processor seconds of one placement of a new graph."""
  graph, op_s = layered_graph(num_ops, width)
  cluster = presets.preset('8xP100')
  if communication is not None:
    graph = communicating(graph, cluster, op_s, communication)
  evaluator = simulator.Simulator(cluster, clusters.FixedCosts(op_s))
  problem = placer_lib.Problem(graph, cluster, evaluator)
  start, busy = time.perf_counter(), time.process_time()
  _PLACERS[name]().place(problem)
  return time.perf_counter() - start, time.process_time() - busy


def _cell(name: str, num_ops: int, width: int,
          communication: float | None) -> str:
  wall_s, busy_s = _seconds(name, num_ops, width, communication)
  target_s = None if communication else _TARGETS_S.get((name, num_ops))
  if target_s is None:
    return f'{wall_s:.2f} ({busy_s:.2f})'
  verdict = '' if wall_s <= target_s else ', missed'
  return f'{wall_s:.2f} ({busy_s:.2f}) of {target_s}{verdict}'


def main() -> None:
  """Prints the tables."""
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument('--sizes', type=int, nargs='*',
                      default=[10_000, 50_000, 83_000])
  parser.add_argument('--widths', type=int, nargs='*', default=[8, 64, 512])
  parser.add_argument('--placers', nargs='*', choices=_PLACERS,
                      default=list(_PLACERS))
  parser.add_argument(
      '--communication', type=float, help='seconds of sending the mean tensor '
      'over those of the mean op')
  flags = parser.parse_args()
  rows = [('ops', 'layer', *flags.placers)]
  sizes = list(itertools.product(flags.sizes, flags.widths))
  with progress_line.shown('placer_speed'):
    rows += progress.of_each(
        'placing', sizes, lambda size:
        (f'{size[0]:,}', str(size[1]), *(_cell(name, *size, flags.communication)
                                         for name in flags.placers)),
        lambda size: f'{size[0]:,} ops')
  print(tables.titled('Seconds per placement, 8xP100', rows))


if __name__ == '__main__':
  main()
