"""Measures the time of the pass.

Run it from the repository with `python -m benchmarks.pass_time`, in an
environment where the package is installed. A row is a training graph of dense
layers over four CPUs. The columns are: ops before Grappler prunes the graph;
wall-clock seconds of the first pass, with a loaded policy; median milliseconds
of a pass that is answered from the cache, when the same function is
instantiated again; and processor seconds of the first pass, for the refinement
and for the rest. Processor seconds depend less on the load of the machine. With
--page=FILE the table replaces the table between two comments of a page in
Markdown.
"""

from __future__ import annotations

import ctypes
import logging
import statistics
import sys
from typing import Sequence

import tensorflow as tf
from tensorflow.python.eager import context

from benchmarks import dense_step
from benchmarks import part_times
from benchmarks import plugin
from benchmarks import tables
from gdp_grappler import native
from gdp_grappler import progress
from gdp_grappler.placers.search import staged_search
from gdp_grappler.plugin import optimizer

_TITLE = 'Pass'
_HEAD = ('ops', 'first', 'cached', 'refining, CPU s', 'all else, CPU s')
_LAYERS = (100, 400, 800, 1500, 5600)  # Layers of the models, unless given.
_REPEATS = 5  # Cached passes. The result is their median.
_DEVICES = 4  # Logical CPUs.
_PARTS: dict[str, Sequence[part_times.Function]] = {
    'refining': [(staged_search, 'search')],
    'other': [(optimizer, 'optimize')],
}


def _pass_ms() -> float:
  """Returns the milliseconds of this process in the pass so far."""
  function = native.load(native.Library.GRAPPLER).gdp_pass_nanoseconds
  function.restype = ctypes.c_int64
  return function() / 1e6


def _measure(num_layers: int) -> dict[str, float]:
  step, x = dense_step.make(num_layers), tf.ones((8, dense_step.UNITS))
  context.enable_graph_collection()
  before = _pass_ms()
  with part_times.clocked(_PARTS) as seconds:
    step(x)
  first = _pass_ms() - before
  tf.identity(1.)
  graphs = context.export_run_metadata().function_graphs
  ops = max(len(g.pre_optimization_graph.node) for g in graphs)
  context.disable_graph_collection()
  cached = []
  for _ in range(_REPEATS):
    context.context().clear_kernel_cache()
    before = _pass_ms()
    step(x)
    cached.append(_pass_ms() - before)
  return {
      'ops': ops, 'first_s': first / 1e3,
      'cached_s': statistics.median(cached) / 1e3,
      **{f'{part}_cpu_s': s for part, s in seconds.items()}
  }


def _table(layers: Sequence[int]) -> tables.Table:
  plugin.require()
  plugin.cut_cpu(_DEVICES)
  logging.getLogger('gdp_grappler').setLevel(logging.WARNING)
  tf.config.optimizer.set_experimental_options(
      {'gdp_placement': {'keep_best': False, 'cache': False}})
  progress.doing('loading the policy')
  _measure(10)
  rows = progress.of_each('placing', layers, _measure,
                          lambda count: f'{count} layers')
  return tables.Table('in the pass, measured', _HEAD,
                      [_cells(row) for row in rows], rows)


def _cells(row: dict[str, float]) -> list[str]:
  return [
      f'{row["ops"]:,}', f'{row["first_s"]:.2f} s',
      tables.milliseconds(row['cached_s']), f'{row["refining_cpu_s"]:.2f}',
      f'{row["other_cpu_s"]:.2f}'
  ]


main = tables.program(
    'pass_time', __doc__, _TITLE, lambda given: _table(given.layers),
    tables.option('--layers', type=int, nargs='+', default=_LAYERS))

if __name__ == '__main__':
  sys.exit(main())
