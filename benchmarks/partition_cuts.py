"""Prints our cuts beside those of the libraries' own command lines.

Run it from the repository with `python -m benchmarks.partition_cuts`; it needs
`gpmetis` and `gpart`/`gmap` (Debian: `apt-get install metis scotch`). The
group graph of each graph is written in the format of each program, which cuts
it with its defaults (METIS: k-way with 3 % imbalance and recursive bisection
with 0.1 %; Scotch: 1 %), into equal parts and into parts in the proportion
2:2:1:1. Ours are `metis.partition` and `scotch.partition` at the same balance:
not more than the program's result has, or its default where that is looser.
Cuts are sums of the integer weights that all of them were given.
"""

import argparse
import dataclasses
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Callable, Iterator, Sequence

import numpy as np

from gdp_grappler import progress
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph import op_graph
from gdp_grappler.graph.sources import sources
from gdp_grappler.placers import group_graph
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.partitioning import metis
from gdp_grappler.placers.partitioning import scotch
from gdp_grappler.reports import progress_line
from gdp_grappler.reports import tables
from tests.helpers import graphs

_TESTDATA = pathlib.Path(__file__).parents[1] / 'tests/testdata'
_UNEVEN = np.array([2, 2, 1, 1]) / 6


@dataclasses.dataclass(frozen=True)
class _Program:
  """A command line and what answers it.

  Attributes:
    name: Shown.
    commands: Names it may be installed under.
    imbalance: That it aims at by default.
    ours: A function `partition`.
    options: Of the command line.
  """

  name: str
  commands: tuple[str, ...]
  imbalance: float
  ours: Callable[..., np.ndarray]
  options: tuple[str, ...] = ()


_PROGRAMS = (
    _Program('gpmetis', ('gpmetis',), 0.03, metis.partition),
    _Program('gpmetis -ptype=rb', ('gpmetis',), 0.001, metis.partition,
             ('-ptype=rb',)),
    _Program('gpart', ('scotch_gpart', 'gpart'), 0.01, scotch.partition),
    _Program('gmap', ('scotch_gmap', 'gmap'), 0.01, scotch.partition),
)


def _command(program: _Program) -> str:
  """Path of a program.

  Raises:
    SystemExit: it is not installed.
  """
  for name in program.commands:
    path = shutil.which(name)
    if path:
      return path
  raise SystemExit(f'{program.commands[-1]} is not installed. On Debian: '
                   'apt-get install metis scotch')


def _write_metis(graph: group_graph.GroupGraph, path: pathlib.Path) -> None:
  """Vertices from 1; each line: weight, then neighbour and edge weight."""
  starts, neighbours, _ = graph.adjacency
  edges = np.stack([neighbours + 1, graph.integer_edges], axis=1)
  lines = [f'{graph.num_vertices} {len(neighbours) // 2} 011']
  for vertex, weight in enumerate(graph.integer_weights):
    row = edges[starts[vertex]:starts[vertex + 1]].reshape(-1)
    lines.append(' '.join(map(str, [weight, *row])))
  path.write_text('\n'.join(lines) + '\n')


def _write_scotch(graph: group_graph.GroupGraph, path: pathlib.Path) -> None:
  """Each line: weight, degree, then edge weight and neighbour."""
  starts, neighbours, _ = graph.adjacency
  edges = np.stack([graph.integer_edges, neighbours], axis=1)
  lines = ['0', f'{graph.num_vertices} {len(neighbours)}', '0 011']
  for vertex, weight in enumerate(graph.integer_weights):
    row = edges[starts[vertex]:starts[vertex + 1]]
    lines.append(' '.join(map(str, [weight, len(row), *row.reshape(-1)])))
  path.write_text('\n'.join(lines) + '\n')


def _theirs(program: _Program, folder: pathlib.Path,
            shares: np.ndarray) -> np.ndarray:
  """int [V], by the command line on the files in a folder."""
  count, path = len(shares), _command(program)
  equal = np.allclose(shares, 1 / count)
  if 'metis' in program.name:
    options = list(program.options)
    if not equal:
      (folder / 'shares').write_text(''.join(
          f'{part} = {share}\n' for part, share in enumerate(shares)))
      options.append(f'-tpwgts={folder / "shares"}')
    subprocess.run([path, *options,
                    str(folder / 'graph.metis'),
                    str(count)], check=True, stdout=subprocess.DEVNULL)
    return np.loadtxt(folder / f'graph.metis.part.{count}', int, ndmin=1)
  target = str(count)
  if program.name == 'gmap':
    target = str(folder / 'target')
    speeds = np.round(shares / shares.min() * 1000).astype(int)
    (folder
     / 'target').write_text(f'cmpltw {count} {" ".join(map(str, speeds))}\n')
  arguments = [target, str(folder / 'graph.grf')]
  if program.name == 'gmap':
    arguments.reverse()
  subprocess.run([path, *program.options, *arguments,
                  str(folder / 'map')], check=True, stdout=subprocess.DEVNULL)
  return np.loadtxt(folder / 'map', int, skiprows=1, ndmin=2)[:, 1]


def _rows(graph: group_graph.GroupGraph,
          shares: np.ndarray) -> Iterator[tuple[bool, tuple[str, ...]]]:
  """One row for each program, and whether ours cut no more."""
  with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    _write_metis(graph, folder / 'graph.metis')
    _write_scotch(graph, folder / 'graph.grf')
    for program in _PROGRAMS:
      if program.name == 'gpart' and not np.allclose(shares, shares[0]):
        continue
      start = time.monotonic()
      theirs = _theirs(program, folder, shares)
      their_s = time.monotonic() - start
      limit = max(graph.imbalance(theirs, shares) - 1, program.imbalance)
      start = time.monotonic()
      ours = program.ours(graph, len(shares), shares=shares, imbalance=limit)
      our_s = time.monotonic() - start
      a, b = graph.cut(theirs), graph.cut(ours)
      excess = graph.imbalance(ours, shares) - 1 - limit
      met = b <= a and excess < 1e-3
      yield met, (program.name, f'{a:,}',
                  f'{graph.imbalance(theirs, shares):.3f}', f'{their_s:.2f}',
                  f'{b:,}', f'{graph.imbalance(ours, shares):.3f}',
                  f'{our_s:.2f}', f'{b / max(a, 1):.3f}',
                  'met' if met else 'missed')


def _group_graph(graph: op_graph.OpGraph) -> group_graph.GroupGraph:
  cluster = presets.preset('4xP100')
  problem = placer_lib.Problem(graph, cluster, simulator.Simulator(cluster))
  return group_graph.build(problem, np.arange(1, cluster.num_devices))


def _cut(graph: op_graph.OpGraph,
         counts: Sequence[int]) -> Iterator[tuple[bool, tuple[str, ...]]]:
  """Whether ours is as good, and the cells, of each way to divide a graph."""
  groups = _group_graph(graph)
  for shares in (*(np.full(k, 1 / k) for k in counts), _UNEVEN):
    parts = str(len(shares)) if np.allclose(shares, shares[0]) else '2:2:1:1'
    for met, row in _rows(groups, shares):
      yield met, (graph.name, f'{groups.num_vertices:,}', parts, *row)


def main() -> None:
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument(
      '--graphs', nargs='*',
      default=sorted(str(path) for path in _TESTDATA.glob('*_train_step.pb')))
  parser.add_argument('--sizes', type=int, nargs='*', default=[1_000, 10_000],
                      help='ops of generated graphs')
  parser.add_argument('--counts', type=int, nargs='*', default=[2, 4, 8])
  flags = parser.parse_args()
  all_graphs = [graphs.random_graph(0, size) for size in flags.sizes]
  all_graphs += [graph_def_io.read(sources.load(path)) for path in flags.graphs]
  found: list[tuple[str, ...]] = [
      ('graph', 'groups', 'parts', 'program', 'its cut', 'imbalance', 's',
       'our cut', 'imbalance', 's', 'ratio', 'target')
  ]
  missed = 0
  with progress_line.shown('partition_cuts'):
    for rows in progress.of_each('cutting', all_graphs,
                                 lambda graph: list(_cut(graph, flags.counts)),
                                 lambda graph: graph.name):
      for met, row in rows:
        missed += not met
        found.append(row)
  print(tables.titled('Cuts at the same balance; ours may not be more', found))
  sys.exit(f'{missed} missed' if missed else 0)


if __name__ == '__main__':
  main()
