r"""Seconds and memory of every stage for graphs of up to a million ops.

Run it from the repository, in an environment where the package is installed:

  python -m benchmarks.scaling --ops 10000 30000 100000 --json

Training graphs of transformer stacks and of unrolled recurrent networks
(`large_graphs`) are read from a file, coarsened, given features, placed by
m-ETF and by the policy on four P100, priced and written. Each graph has a fresh
process, which has loaded the policy. Prints a list of {"graph", "ops", "stage",
"seconds", "cpu_seconds", "rss_bytes"}: wall-clock seconds, processor seconds,
and the peak of the process's memory by the end of the stage. Without --json,
prints a table. The stage `policy` contains the work of `coarsen` and `features`
once more. With --page=FILE the table replaces the table between two comments of
a page in Markdown, and a picture is drawn beside the page. Graphs that fail are
left out; a line says why.
"""

from __future__ import annotations

import argparse
import io
import itertools
import pathlib
import resource
import sys
import tempfile
import time
from typing import Any, Callable, Sequence, TypeVar

import numpy as np

from benchmarks import tables
from gdp_grappler import errors
from gdp_grappler import extras
from gdp_grappler import files
from gdp_grappler import progress
from gdp_grappler.processes import calls

# Sizes of the graphs, unless given.
_OPS = 10_000, 30_000, 100_000, 300_000, 1_000_000
# Graphs consist of whole layers. So smaller ones would miss their size by far.
_LEAST_OPS = 1000
_GRAPHS = 'transformer', 'recurrent'
_CLUSTER = '4xP100'
_STAGES = 'read', 'coarsen', 'features', 'm-ETF', 'policy', 'price', 'write'
_HEAD = 'graph', 'ops', *_STAGES, 'all s', 'CPU s', 'GB'
_TIMEOUT_S = 3600.  # Seconds for the process of one graph.
_Row = dict[str, Any]
_T = TypeVar('_T')


class _Stages:
  """Times the stages that run in this process, one after the other."""

  def __init__(self) -> None:
    self.rows: list[_Row] = []

  def run(self, stage: str, function: Callable[[], _T]) -> _T:
    """Runs a stage, and returns its result."""
    start, cpu_start = time.perf_counter(), time.process_time()
    result = function()
    self.rows.append({
        'stage': stage, 'seconds': time.perf_counter() - start,
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
  stages, cluster = _Stages(), presets.preset(_CLUSTER)
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
  ops = step.graph.num_ops
  return [{'graph': graph, 'ops': ops, **row} for row in stages.rows]


def _rows(graph: str, ops: int) -> list[_Row]:
  """Makes a graph in one process, and measures it in a fresh one."""
  with tempfile.TemporaryDirectory() as folder:
    path = str(pathlib.Path(folder, 'graph.pb'))
    calls.call(f'{__package__}.scaling:make', graph, ops, path,
               timeout_s=_TIMEOUT_S)
    return calls.call(f'{__package__}.scaling:measure', graph, path,
                      timeout_s=_TIMEOUT_S)


def _cells(rows: Sequence[_Row]) -> list[str]:
  """Returns the cells of a graph, from the rows of its stages."""
  return [
      rows[0]['graph'], f'{rows[0]["ops"]:,}',
      *(f'{row["seconds"]:.2f}' for row in rows),
      f'{sum(row["seconds"] for row in rows):.1f}',
      f'{sum(row["cpu_seconds"] for row in rows):.1f}',
      f'{max(row["rss_bytes"] for row in rows) / 1e9:.2f}'
  ]


def _draw(rows: Sequence[_Row], path: pathlib.Path) -> None:
  """Draws seconds over ops, both logarithmic.

  The exponent of a stage is that by which seconds grow with ops; 1 is linear.
  """
  import matplotlib
  matplotlib.use('Agg')
  from matplotlib import pyplot
  graphs = list(dict.fromkeys(row['graph'] for row in rows))
  figure, axes = pyplot.subplots(1, len(graphs), figsize=(9, 4), sharey=True,
                                 layout='constrained', squeeze=False)
  for axis, graph in zip(axes[0], graphs):
    for stage in _STAGES:
      own = [r for r in rows if (r['graph'], r['stage']) == (graph, stage)]
      ops, seconds = ([r[key] for r in own] for key in ('ops', 'seconds'))
      label = stage
      if len(ops) > 1:
        exponent = np.polyfit(np.log(ops), np.log(np.maximum(seconds, 1e-6)), 1)
        label += f' ({exponent[0]:.2f})'
      axis.plot(ops, seconds, marker='o', label=label)
    ends = np.array([min(r['ops'] for r in rows), max(r['ops'] for r in rows)])
    axis.plot(ends, ends * 1e-5, color='#999999', linestyle=':', label='linear')
    axis.set(title=graph, xscale='log', yscale='log', xlabel='ops')
    axis.legend(fontsize=8)
  axes[0, 0].set_ylabel('seconds (exponent in brackets)')
  picture = io.BytesIO()
  figure.savefig(picture, dpi=110)
  pyplot.close(figure)
  files.write_atomically(path, picture.getvalue())


def _find(given: argparse.Namespace) -> tables.Table:
  if given.page:
    extras.require('The picture', 'matplotlib')
  failures = []

  def name(case: tuple[str, int]) -> str:
    return f'{case[0]}, {case[1]:,} ops'

  def measured(case: tuple[str, int]) -> list[_Row]:
    try:
      return _rows(*case)
    except calls.CallError as error:
      failures.append(f'{name(case)}: left out: {error}')
      return []

  cases = itertools.product(given.graphs, given.ops)
  of_graphs = progress.of_each('measuring', cases, measured, name)
  for line in failures:
    progress.say(line)
  done = [of_graph for of_graph in of_graphs if of_graph]
  if not done:
    raise errors.GdpError('No graph was measured; the lines above say why.')
  rows = [row for of_graph in done for row in of_graph]
  return tables.Table('Seconds by stage', _HEAD, list(map(_cells, done)), rows,
                      bool(failures), lambda path: _draw(rows, path))


def _size(text: str) -> int:
  """Returns an argument of --ops."""
  if text.isdecimal() and int(text) >= _LEAST_OPS:
    return int(text)
  raise argparse.ArgumentTypeError(
      f'{text!r} is no whole number from {_LEAST_OPS} on')


main = tables.program(
    'scaling', __doc__, 'seconds and memory by ops', _find,
    tables.option('--ops', nargs='+', type=_size, default=_OPS),
    tables.option('--graphs', nargs='+', choices=_GRAPHS, default=_GRAPHS))

if __name__ == '__main__':
  sys.exit(main())
