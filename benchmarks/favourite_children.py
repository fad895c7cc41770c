"""Prints what m-SCT loses or gains by matching in place of linear programs.

Run it from the repository with `python -m benchmarks.favourite_children`. Half
of the graphs are random, half in layers, on 4 and 8 P100s; `communication` is
what it takes to send the mean tensor over what the mean op takes. Both ways
make the same proposals, with favourite children by matching and by the program
of Hanen and Munier that HiGHS solves (`m_sct_published` has those, in one
proposal). Steps are simulated: by matching over by the program, so that less
than 1 is faster. Seconds are of the processor.
"""

from __future__ import annotations

import argparse
import itertools
import time

import numpy as np

from benchmarks import placer_speed
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
from gdp_grappler.reports import progress_line
from gdp_grappler.reports import tables
from tests.helpers import clusters
from tests.helpers import graphs

_WIDTHS = 4, 8, 32, 64
_WINDOW = 4000


class _ByProgram(m_sct.MSctPlacer):
  """Makes all our proposals, with the favourite children of the papers."""

  def _favourites(self, shared: proposals.Proposals,
                  bundles: proposals.Bundles) -> np.ndarray:
    tasks = shared.tasks(bundles)
    return favourite_children.solve(tasks, bundling.work_s(tasks), shared.link,
                                    _WINDOW)[None]


def _graph(num_ops: int, seed: int) -> tuple[op_graph.OpGraph, np.ndarray]:
  """A graph, and the seconds of its ops [N]."""
  if seed % 2:
    width = _WIDTHS[seed // 2 % len(_WIDTHS)]
    return placer_speed.layered_graph(num_ops, width, seed)
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


def _row(num_ops: int, communication: float, count: int) -> tuple[str, ...]:
  ratios, seconds = [], []
  for seed in range(count):
    graph, op_s = _graph(num_ops, seed)
    cluster = presets.preset(f'{4 + 4 * (seed // 2 % 2)}xP100')
    graph = placer_speed.communicating(graph, cluster, op_s, communication)
    found = [
        _placed(placer, graph, cluster, op_s)
        for placer in (m_sct.MSctPlacer(), _ByProgram())
    ]
    ratios.append(found[0][0] / found[1][0])
    seconds.append([busy for _, busy in found])
  own, program = np.mean(seconds, axis=0)
  return (f'{num_ops:,}', f'{communication:g}',
          f'{np.exp(np.log(ratios).mean()):.3f}', f'{min(ratios):.3f}',
          f'{max(ratios):.3f}', f'{own:.2f}', f'{program:.2f}')


def main() -> None:
  """Runs the program."""
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument('--sizes', type=int, nargs='*', default=[300, 1000])
  parser.add_argument('--communication', type=float, nargs='*',
                      default=[.1, .5, 1., 5.])
  parser.add_argument('--graphs', type=int, default=32, help='of each')
  flags = parser.parse_args()
  rows: list[tuple[str, ...]] = [('ops', 'communication', 'mean', 'best',
                                  'worst', 'matching s', 'program s')]
  with progress_line.shown('favourite_children'):
    for size, communication in itertools.product(flags.sizes,
                                                 flags.communication):
      progress.doing(f'{size} ops, communication {communication:g}')
      rows.append(_row(size, communication, flags.graphs))
  print(tables.titled('Steps by matching over by programs', rows))


if __name__ == '__main__':
  main()
