r"""Predicted gains of the option `gdp_placement` for `fit`.

Run it from the repository:

  python -m benchmarks.fit_gain --cluster=2xP100 --json GRAPH ...

A GRAPH is a captured graph, or `module:function` that returns a compiled Keras
model. The default is the three models of `MODELS`. "before" means that every op
with a GPU kernel is on the first GPU. "after" means that the option is True and
variables may move. With --json, prints a list of {"graph", "before_s",
"after_s", "variables_moved"}, in simulated seconds per step. Without --json,
prints a table.

--search_s=60 adds "best_s" and "best_by": the best step of all other placers,
each with this time limit, with the control edges that the pass would add.
--emulated adds "emulated_before_s" and "emulated_after_s": seconds of the two
steps in TensorFlow's own runtime on emulated GPUs, or null for a step that does
not run. With --page=FILE the table replaces the table between two comments of a
page in Markdown.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import os
import sys
from typing import Any, Callable, Sequence

from gdp_grappler import environment
from gdp_grappler import progress

os.environ.update(environment.without_plugin())

import numpy as np
from tensorflow.core.framework import graph_pb2

from benchmarks import tables
from gdp_grappler import errors
from gdp_grappler.cluster import architectures
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import resolve
from gdp_grappler.evaluation.emulation import emulator as emulator_lib
from gdp_grappler.evaluation.ordering import control_edges
from gdp_grappler.graph import assumptions
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.legality import pins
from gdp_grappler.graph.sources import sources
from gdp_grappler.placers import placer_table
from gdp_grappler.placers import registry
from gdp_grappler.placers import step as step_lib
from gdp_grappler.plugin import optimizer
from gdp_grappler.plugin import outcome as outcome_lib
from gdp_grappler.plugin import settings as settings_lib
from gdp_grappler.plugin import step_costs

MODELS = tuple(
    f'benchmarks.keras_models:{name}' for name in ('cnn', 'mlp', 'lstm'))
_TITLE = 'Gains'
# Number of emulated steps. The result is their median.
_EMULATED_STEPS = 3
_Row = dict[str, Any]


def _positive(kind: type[float]) -> Callable[[str], float]:

  def positive(text: str) -> float:
    value = kind(text)
    if not 0 < value < math.inf:
      raise argparse.ArgumentTypeError(f'{text} is not more than 0')
    return value

  return positive


def gain(path: str, settings: settings_lib.Settings, search_s: float = 0.,
         emulated: bool = False) -> _Row:
  """Returns the row of a graph.

  Args:
    path: File of the graph.
    settings: The option, with a cluster and a batch size.
    search_s: Time limit of other placers, in seconds; 0 leaves them out.
    emulated: Whether to run both steps on emulated GPUs, too.

  Raises:
    GdpError: there is no such graph, or it cannot be placed.
  """
  assert settings.cluster is not None and settings.batch_size is not None
  cluster = step_costs.of_fit(resolve.resolve(settings.cluster))
  found = sources.load(path, batch_size=settings.batch_size,
                       architecture=architectures.of(cluster))
  source = on_first_gpu(found, cluster, settings.batch_size)
  step = step_lib.of_source(source, cluster, live=True, relocatable=True,
                            batch_size=settings.batch_size)
  before = _placement(step.graph.devices, cluster)
  before_s = step.simulator().evaluate(step.graph, before).step_time_s
  outcome = optimizer.optimize(source, settings, relocatable=True)
  row: _Row = {
      'graph': path, 'before_s': before_s,
      'after_s': before_s if outcome.after_s is None else outcome.after_s,
      'variables_moved': _variables_moved(source, outcome)
  }
  if emulated:
    row.update(_emulated(step, before, outcome))
  if search_s:
    row.update(_best(step, settings, search_s))
  return row


def on_first_gpu(source: source_graph.SourceGraph, cluster: cluster_lib.Cluster,
                 batch_size: int) -> source_graph.SourceGraph:
  """Places the graph as TensorFlow would on a machine like the cluster."""
  step = step_lib.of_source(source, cluster, batch_size=batch_size)
  placement = registry.create('gpu_only').place(step.problem())
  definition = graph_pb2.GraphDef()
  definition.CopyFrom(source.graph_def)
  for node, device in zip(definition.node, placement.device_strings()):
    node.device = device
  return dataclasses.replace(source, graph_def=definition,
                             devices=cluster.device_names)


def _placement(devices: Sequence[str],
               cluster: cluster_lib.Cluster) -> placement_lib.Placement:
  return placement_lib.Placement(
      np.array([cluster.device_index(name) for name in devices]), cluster)


def _variables_moved(source: source_graph.SourceGraph,
                     outcome: outcome_lib.Outcome) -> int:
  if outcome.devices is None:
    return 0
  return sum(
      pins.is_variable_argument(node) and device != node.device
      for node, device in zip(source.graph_def.node, outcome.devices))


def _emulated(step: step_lib.Step, before: placement_lib.Placement,
              outcome: outcome_lib.Outcome) -> _Row:
  """Returns the seconds of the steps "before" and "after" on emulated GPUs."""
  edges = np.array(outcome.control_edges, np.int32).reshape(-1, 2)
  with emulator_lib.Emulator(
      step.cluster, step.cost_model, steps=_EMULATED_STEPS,
      control_edges=lambda graph, placement: edges) as emulator:
    before_s = after_s = _seconds(emulator, step, before)
    if outcome.devices is not None:
      # The emulator adds control edges only to a placement with priorities.
      after = dataclasses.replace(_placement(outcome.devices, step.cluster),
                                  priorities=np.zeros(step.graph.num_ops))
      after_s = _seconds(emulator, step, after)
  return {'emulated_before_s': before_s, 'emulated_after_s': after_s}


def _seconds(emulator: emulator_lib.Emulator, step: step_lib.Step,
             placement: placement_lib.Placement) -> float | None:
  evaluation = emulator.evaluate(step.graph, placement)
  return evaluation.step_time_s if evaluation.valid else None


def _best(step: step_lib.Step, settings: settings_lib.Settings,
          search_s: float) -> _Row:
  """Returns the best placement of the other placers, as columns of a row."""
  problem = dataclasses.replace(step.problem(seed=settings.seed),
                                time_budget_s=search_s)
  unfit = {placer_table.Need.EXPERT, placer_table.Need.KERAS_2}
  found = {'-': math.inf}  # No placer, if no placement fits.
  for name, entry in placer_table.table().items():
    if entry.needs & unfit or name == registry.DEFAULT:
      continue
    try:
      placement = registry.create(name).place(problem)
    except errors.GdpError:
      continue  # The library is missing, or the placer cannot place the graph.
    evaluation = control_edges.evaluate(step.graph, placement, step.simulator(),
                                        step.simulator())
    if evaluation.valid:
      found[name] = evaluation.step_time_s
  best = min(found, key=found.__getitem__)
  return {'best_s': found[best], 'best_by': best}


def _table(arguments: argparse.Namespace) -> tables.Table:
  settings = dataclasses.replace(settings_lib.Settings(),
                                 cluster=arguments.cluster,
                                 batch_size=arguments.batch_size)
  rows = progress.of_each(
      'placing', arguments.graphs,
      lambda path: gain(path, settings, arguments.search_s, arguments.emulated))
  head, *cells = _cells(rows, arguments)
  return tables.Table(f'{arguments.cluster}, simulated', head, cells, rows)


def _cells(rows: Sequence[_Row],
           arguments: argparse.Namespace) -> list[list[str]]:
  """Returns the titles of the columns, then the cells of each row."""
  result = [['graph', 'before', 'after', 'gain', 'variables moved']]
  result += [[
      row['graph'],
      tables.milliseconds(row['before_s']),
      tables.milliseconds(row['after_s']),
      _gain(row['before_s'], row['after_s']),
      str(row['variables_moved'])
  ] for row in rows]
  more: list[list[str]] = [[] for _ in result]
  if arguments.search_s:
    more = [['best', 'by', 'after / best'], *([
        tables.milliseconds(row['best_s']), row['best_by'],
        f'{row["after_s"] / row["best_s"]:.3f}'
    ] for row in rows)]
  if arguments.emulated:
    emulated = [['emulated before', 'emulated after', 'emulated gain'], *([
        tables.milliseconds(row['emulated_before_s']),
        tables.milliseconds(row['emulated_after_s']),
        _gain(row['emulated_before_s'], row['emulated_after_s'])
    ] for row in rows)]
    more = [[*first, *then] for first, then in zip(more, emulated)]
  return [[*first, *then] for first, then in zip(result, more)]


def _gain(before_s: float | None, after_s: float | None) -> str:
  if before_s is None or after_s is None:
    return '-'
  return f'{before_s / after_s:.2f}x'


main = tables.program(
    'fit_gain', __doc__, _TITLE, _table,
    tables.option('graphs', nargs='*', metavar='GRAPH', default=MODELS),
    tables.option('--cluster', default='2xP100'),
    tables.option('--batch_size', type=_positive(int),
                  default=assumptions.DEFAULT_BATCH_SIZE),
    tables.option('--search_s', type=_positive(float), default=0.),
    tables.option('--emulated', action='store_true'))

if __name__ == '__main__':
  sys.exit(main())
