r"""Seconds and memory of every stage for graphs of up to a million ops.

Run it from the repository, in an environment where the package is installed:

  python -m benchmarks.scaling --ops=10000,30000,100000 --json

Training graphs of transformer stacks and of unrolled recurrent networks
(`large_graphs`) are read from a file, coarsened, given features, placed by
m-ETF and by the policy on four P100, priced and written. Each graph has a fresh
process, which has loaded the policy. Prints a list of {"graph", "ops", "stage",
"seconds", "cpu_seconds", "rss_bytes"}: wall-clock seconds, processor seconds,
and the peak of the process's memory by the end of the stage. Without --json,
prints a table. The stage `policy` contains the work of `coarsen` and `features`
once more. With --page=FILE the program updates the table and a picture beside
it after every graph. With --journal=FILE rows are kept in this file, and a run
that was ended goes on after the last graph in it. Delete the file after a
change of code.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import resource
import sys
import tempfile
import time
from typing import Any, Callable, Sequence, TypeVar

import numpy as np

from benchmarks import pages
from gdp_grappler import errors
from gdp_grappler.processes import calls
from gdp_grappler.reports import tables

# Sizes of the graphs, unless given.
_OPS = 10_000, 30_000, 100_000, 300_000, 1_000_000
_GRAPHS = 'transformer', 'recurrent'
_CLUSTER = '4xP100'
STAGES = 'read', 'coarsen', 'features', 'm-ETF', 'policy', 'price', 'write'
_TITLE = 'seconds and memory by ops'
_TIMEOUT_S = 3600.  # Seconds for the process of one graph.
_Row = dict[str, Any]
_T = TypeVar('_T')


class _Stages:
  """Times the stages that run in this process, one after the other."""

  def __init__(self, graph: str) -> None:
    self.rows: list[_Row] = []
    self._graph = graph

  def run(self, stage: str, function: Callable[[], _T]) -> _T:
    """Runs a stage, and returns its result."""
    start, cpu_start = time.perf_counter(), time.process_time()
    result = function()
    self.rows.append({
        'graph': self._graph, 'ops': 0, 'stage': stage,
        'seconds': time.perf_counter() - start,
        'cpu_seconds': time.process_time() - cpu_start,
        'rss_bytes': 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    })
    return result


def make(graph: str, ops: int, path: str) -> None:
  """Writes a graph to a file."""
  from benchmarks import large_graphs
  source = large_graphs.GRAPHS[graph](ops)
  pathlib.Path(path).write_bytes(source.to_meta_graph().SerializeToString())


def measure(graph: str, path: str) -> list[_Row]:
  """Returns the rows of a graph in a file."""
  from tensorflow.core.protobuf import meta_graph_pb2

  from gdp_grappler.cluster import presets
  from gdp_grappler.features import featurizer
  from gdp_grappler.graph import coarsening
  from gdp_grappler.graph import graph_def_io
  from gdp_grappler.graph import source_graph
  from gdp_grappler.placers import registry
  from gdp_grappler.placers import step as step_lib
  from gdp_grappler.placers.policy import learned
  stages, cluster = _Stages(graph), presets.preset(_CLUSTER)
  policy, m_etf = learned.LearnedPlacer(), registry.create('m_etf')

  def read() -> step_lib.Step:
    source = source_graph.from_meta_graph(
        meta_graph_pb2.MetaGraphDef.FromString(pathlib.Path(path).read_bytes()))
    return step_lib.of_source(source, cluster)

  step = stages.run('read', read)
  problem = step.problem()
  units = stages.run(
      'coarsen', lambda: coarsening.coarsen(step.graph, problem.allowed, problem
                                            .op_seconds))
  stages.run(
      'features', lambda: featurizer.featurize(step.graph, cluster, units,
                                               problem.op_seconds))
  placement = stages.run('m-ETF', lambda: m_etf.place(problem))
  stages.run('policy', lambda: policy.candidates(problem))
  stages.run(
      'price',
      lambda: step.simulator().price(step.graph, placement.devices[None]))
  assert step.source is not None
  graph_def = step.source.graph_def
  stages.run(
      'write', lambda: pathlib.Path(path).write_bytes(
          graph_def_io.write(graph_def, placement.device_strings()).
          SerializeToString()))
  return [{**row, 'ops': step.graph.num_ops} for row in stages.rows]


class _Journal:
  """Rows of graphs that were measured, a line of JSON for each graph."""

  def __init__(self, path: pathlib.Path | None) -> None:
    """Reads the rows in the file. Without a path keeps nothing.

    Raises:
      GdpError: it cannot be read.
    """
    self._path = path
    self._known: dict[tuple[str, int], list[_Row]] = {}
    if path is None or not path.exists():
      return
    try:
      for line in path.read_text(encoding='utf-8').splitlines():
        kept = json.loads(line)
        self._known[kept['graph'], kept['size']] = kept['rows']
    except (OSError, ValueError, KeyError, TypeError) as error:
      raise errors.GdpError(f'{path} is no journal of this program ({error!r}).'
                            ' Delete it, or name another one.') from error

  def rows(self, graph: str, ops: int) -> list[_Row]:
    """Returns the rows of one size, and measures them if they are missing."""
    key = graph, ops
    if key not in self._known:
      self._known[key] = _rows(graph, ops)
      if self._path:
        with self._path.open('a', encoding='utf-8') as file:
          file.write(
              json.dumps(
                  {'graph': graph, 'size': ops, 'rows': self._known[key]})
              + '\n')
    return self._known[key]


def _rows(graph: str, ops: int) -> list[_Row]:
  """Makes a graph in one process, and measures it in a fresh one."""
  with tempfile.TemporaryDirectory() as folder:
    path = str(pathlib.Path(folder, 'graph.pb'))
    calls.call(f'{__package__}.scaling:make', graph, ops, path,
               timeout_s=_TIMEOUT_S)
    return calls.call(f'{__package__}.scaling:measure', graph, path,
                      timeout_s=_TIMEOUT_S)


def table(rows: Sequence[_Row]) -> tuple[list[str], list[list[str]]]:
  """Returns titles and cells, a line for each graph of a size."""
  cells = []
  for key in dict.fromkeys((row['graph'], row['ops']) for row in rows):
    own = [row for row in rows if (row['graph'], row['ops']) == key]
    seconds = {row['stage']: row['seconds'] for row in own}
    cells.append([
        key[0], f'{key[1]:,}', *(f'{seconds[stage]:.2f}' for stage in STAGES),
        f'{sum(seconds.values()):.1f}',
        f'{sum(row["cpu_seconds"] for row in own):.1f}',
        f'{max(row["rss_bytes"] for row in own) / 1e9:.2f}'
    ])
  return ['graph', 'ops', *STAGES, 'all s', 'CPU s', 'GB'], cells


def growth(rows: Sequence[_Row], graph: str, stage: str) -> float:
  """Returns the exponent by which seconds grow with ops; 1 is linear."""
  own = [row for row in rows if (row['graph'], row['stage']) == (graph, stage)]
  return float(
      np.polyfit(np.log([row['ops'] for row in own]),
                 np.log([max(row['seconds'], 1e-6) for row in own]), 1)[0])


def draw(rows: Sequence[_Row], path: pathlib.Path) -> None:
  """Draws seconds over ops, both logarithmic."""
  import matplotlib
  matplotlib.use('Agg')
  from matplotlib import pyplot
  graphs = list(dict.fromkeys(row['graph'] for row in rows))
  figure, axes = pyplot.subplots(1, len(graphs), figsize=(9, 4), sharey=True,
                                 layout='constrained', squeeze=False)
  for axis, graph in zip(axes[0], graphs):
    for stage in STAGES:
      own = [
          row for row in rows if (row['graph'], row['stage']) == (graph, stage)
      ]
      exponent = f' ({growth(rows, graph, stage):.2f})' if len(own) > 1 else ''
      axis.plot([row['ops'] for row in own], [row['seconds'] for row in own],
                marker='o', label=f'{stage}{exponent}')
    ends = np.array([min(r['ops'] for r in rows), max(r['ops'] for r in rows)])
    axis.plot(ends, ends * 1e-5, color='#999999', linestyle=':', label='linear')
    axis.set(title=graph, xscale='log', yscale='log', xlabel='ops')
    axis.legend(fontsize=8)
  axes[0, 0].set_ylabel('seconds (exponent in brackets)')
  figure.savefig(path, dpi=110)
  pyplot.close(figure)


def _update(page: pathlib.Path, rows: Sequence[_Row], command: str) -> None:
  draw(rows, page.with_suffix('.png'))
  pages.Page(page, _TITLE).replace(command, *table(rows))


def main(arguments: Sequence[str] | None = None) -> int:
  """Runs the program; returns 0, or 2 for unusable arguments."""
  parser = argparse.ArgumentParser(description='Measures stages by size.')
  parser.add_argument('--ops', default=','.join(map(str, _OPS)))
  parser.add_argument('--graphs', default=','.join(_GRAPHS))
  parser.add_argument('--json', action='store_true')
  parser.add_argument('--page', type=pathlib.Path)
  parser.add_argument('--journal', type=pathlib.Path)
  options = parser.parse_args(arguments)
  try:
    sizes = [int(text) for text in options.ops.split(',')]
  except ValueError:
    parser.error(f'--ops is {options.ops!r}; give whole numbers, such as '
                 '10000,30000.')
  graphs = options.graphs.split(',')
  if min(sizes) < 1000 or not set(graphs) <= set(_GRAPHS):
    parser.error('--ops are from 1000 on; --graphs are any of '
                 f'{",".join(_GRAPHS)}.')
  try:
    rows = _measured(graphs, sizes, options)
  except (errors.GdpError, calls.CallError, OSError) as error:
    print(f'Error: {error}', file=sys.stderr)
    return 2
  if not options.json:
    head, cells = table(rows)
    print(tables.titled('Seconds by stage', [head, *cells]))
  return 0


def _measured(graphs: Sequence[str], sizes: Sequence[int],
              options: argparse.Namespace) -> list[_Row]:
  """Returns all rows. Writes JSON and the page after each graph."""
  if options.page:
    pages.Page(options.page, _TITLE)
  journal = _Journal(options.journal)
  rows: list[_Row] = []
  for graph in graphs:
    for ops in sizes:
      found = journal.rows(graph, ops)
      if options.json:
        print(', ' if rows else '[',
              json.dumps(found)[1:-1], sep='', end='', flush=True)
      rows += found
      print(f'{graph}, {ops:,} ops: done', file=sys.stderr, flush=True)
      if options.page:
        _update(
            options.page, rows, 'python -m benchmarks.scaling '
            f'--ops={options.ops} --graphs={options.graphs} --page=FILE')
  if options.json:
    print(']')
  return rows


if __name__ == '__main__':
  sys.exit(main())
