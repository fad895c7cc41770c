r"""Effect of XLA's auto-clustering on placed steps.

Run it from the repository, on a machine with nothing else to do:

  python -m benchmarks.auto_clustering [--json] [--page=FILE] [MODEL ...]

A MODEL is a `module:function` that returns a compiled Keras model. Each model
trains over two logical CPUs in four ways: with and without placement by
`PLACER`, and with and without `tf.config.optimizer.set_jit('autoclustering')`.
Each way has a process of its own. For each way the program prints the measured
step, the number of clusters, the number of devices with clusters, the seconds
of the first step, and the difference of the losses from those without XLA and
placement. With --page=FILE the table replaces the table between two comments of
a page in Markdown.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
from typing import Any

import keras
import tensorflow as tf
from tensorflow.python.eager import context

from benchmarks import fit_workers
from benchmarks import plugin
from benchmarks import tables
from benchmarks import timed_fits
from gdp_grappler import environment
from gdp_grappler import errors
from gdp_grappler import progress
from gdp_grappler.graph.sources import tracing_worker
from gdp_grappler.processes import calls

# This placer divides a graph even if the step becomes slower. Logical devices
# share their cores, so a placer that minds the price would not divide the
# graph.
PLACER = 'm_topo_published'
# A large budget, because a graph that exceeds the budget is not placed.
_OPTION = {'placer': PLACER, 'keep_best': False, 'time_budget_s': 600}
# Timed steps of a run. The result is their median.
_STEPS = 15
_WARM_UP = 5  # Steps before the timed ones.
_DEVICES = 2  # Logical CPUs.
_TIMEOUT_S = 900.  # Seconds for the process of one way.
# Without this flag XLA makes no clusters on CPUs.
_FLAGS = {'TF_XLA_FLAGS': '--tf_xla_cpu_global_jit'}
_CLUSTER_OPS = ('_XlaRun', 'XlaLaunch')
_TITLE = 'Auto-clustering'
_HEAD = ('graph', 'XLA', 'placed', 'step', 'first step', 'clusters',
         'devices with clusters', 'losses differ')
_Row = dict[str, Any]


def _table(arguments: argparse.Namespace) -> tables.Table:
  plugin.require()
  of_models = progress.of_each('training', arguments.models, _rows)
  rows = [row for rows in of_models for row in rows]
  return tables.Table('two logical CPU devices, measured', _HEAD,
                      [_cells(row) for row in rows], rows)


def _rows(model: str) -> list[_Row]:
  """Returns four rows: with and without XLA, unplaced and placed.

  Raises:
    MeasurementError: the model cannot be trained.
  """
  rows: list[_Row] = []
  for with_xla, option in itertools.product((False, True), (False, _OPTION)):
    variables = {environment.DISABLE: '0', **(_FLAGS if with_xla else {})}
    try:
      row = calls.call(f'{__package__}.auto_clustering:measure', model,
                       with_xla, option, timeout_s=_TIMEOUT_S,
                       environment=variables)
    except calls.CallError as error:
      raise errors.MeasurementError(
          f'{model} cannot be trained: {error}') from error
    rows.append({'graph': model, 'xla': with_xla, **row})
  stock = rows[0]['losses']
  return [{**row, 'losses': _difference(stock, row['losses'])} for row in rows]


def _difference(first: list[float], second: list[float]) -> float:
  """Returns the largest relative difference of two losses."""
  return max(abs(a - b) / abs(a) for a, b in zip(first, second, strict=True))


def measure(path: str, with_xla: bool, option: Any) -> _Row:
  """Measures one way, in a process that has done nothing else.

  Args:
    path: 'module:function' of the model.
    with_xla: Whether XLA makes clusters.
    option: Value of the option `gdp_placement`.
  """
  plugin.cut_cpu(_DEVICES)
  if with_xla:
    tf.config.optimizer.set_jit('autoclustering')
  tf.config.optimizer.set_experimental_options({'gdp_placement': option})
  keras.utils.set_random_seed(0)
  model = tracing_worker.call_function(path)
  data = timed_fits.batch(model)
  context.context().enable_graph_collection()
  steps = timed_fits.run(model, data, _WARM_UP)
  graphs = context.context().export_run_metadata().function_graphs
  context.context().disable_graph_collection()
  nodes = [
      node for graph in graphs for part in graph.partition_graphs
      for node in part.node
  ]
  clusters = {(n.name, n.device) for n in nodes if n.op in _CLUSTER_OPS}
  steps += timed_fits.run(model, data, _STEPS)
  return {
      'placed': len({n.device for n in nodes}) > 1,
      'step_s': statistics.median(s.seconds for s in steps[_WARM_UP:]),
      'first_s': steps[0].seconds, 'clusters': len(clusters),
      'devices': len({device for _, device in clusters}),
      'losses': [s.loss for s in steps]
  }


def _cells(row: _Row) -> list[str]:
  return [
      row['graph'], 'on' if row['xla'] else 'off',
      'yes' if row['placed'] else 'no',
      tables.milliseconds(row['step_s']), f'{row["first_s"]:.1f} s',
      str(row['clusters']),
      str(row['devices']), f'{row["losses"]:.1g}' if row['losses'] else '0'
  ]


main = tables.program(
    'auto_clustering', __doc__, _TITLE, _table,
    tables.option('models', nargs='*', metavar='MODEL',
                  default=fit_workers.MODELS))

if __name__ == '__main__':
  sys.exit(main())
