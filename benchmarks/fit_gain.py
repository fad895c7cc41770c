r"""What `gdp_placement` would do for `fit`, predicted.

Run it from the repository:

  python -m benchmarks.fit_gain --cluster=2xP100 --json GRAPH ...

A GRAPH is a captured graph, or `module:function` that returns a compiled Keras
model; without any, the three models of `MODELS`. Before, every op with a GPU
kernel is on the first GPU. The option is True, and variables may move. Prints a
list of {"graph", "before_s", "after_s", "variables_moved"}, in seconds per
step, simulated; without --json, a table.

With --search_s=60 there are also "best_s" and "best_by": the best that any
other placer finds, with the control edges that the pass would add. That is how
long each of them may search.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
from typing import Any, Sequence

from gdp_grappler import environment

os.environ.update(environment.without_plugin())

import numpy as np
from rich import console
from rich import table
from tensorflow.core.framework import graph_pb2

from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import resolve
from gdp_grappler.evaluation.ordering import control_edges
from gdp_grappler.graph import assumptions
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.legality import pins
from gdp_grappler.graph.sources import sources
from gdp_grappler.placers import entries
from gdp_grappler.placers import registry
from gdp_grappler.placers import step as step_lib
from gdp_grappler.plugin import optimizer
from gdp_grappler.plugin import settings as settings_lib

MODELS = tuple(
    f'benchmarks.keras_models:{name}' for name in ('cnn', 'mlp', 'lstm'))
_Row = dict[str, Any]


def main(argv: Sequence[str] | None = None) -> int:
  """Prints the table or the list.

  Args:
    argv: Arguments after the program's name; `sys.argv` if None.

  Returns:
    0, or 2 for bad input.
  """
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument('graphs', nargs='*', metavar='GRAPH', default=MODELS)
  parser.add_argument('--cluster', default='2xP100')
  parser.add_argument('--batch_size', type=int,
                      default=assumptions.DEFAULT_BATCH_SIZE)
  parser.add_argument('--search_s', type=float, default=0.)
  parser.add_argument('--json', action='store_true')
  arguments = parser.parse_args(argv)
  try:
    settings = dataclasses.replace(settings_lib.Settings(),
                                   cluster=arguments.cluster,
                                   batch_size=arguments.batch_size)
    rows = [
        gain(path, settings, arguments.search_s) for path in arguments.graphs
    ]
  except errors.GdpError as error:
    print(f'fit_gain: error: {error}', file=sys.stderr)
    return 2
  if arguments.json:
    print(json.dumps(rows, indent=2))
  else:
    console.Console().print(_table(rows, arguments.cluster))
  return 0


def gain(path: str, settings: settings_lib.Settings,
         search_s: float = 0.) -> _Row:
  """The row of one graph.

  Args:
    path: Of the graph.
    settings: With a cluster and a batch size.
    search_s: How long other placers may search; 0 to leave them out.

  Raises:
    GdpError: there is no such graph, or it cannot be placed.
  """
  assert settings.cluster is not None and settings.batch_size is not None
  cluster = resolve.resolve(settings.cluster)
  source = on_first_gpu(sources.load(path, batch_size=settings.batch_size),
                        cluster, settings.batch_size)
  step = step_lib.of_source(source, cluster, live=True, relocatable=True,
                            batch_size=settings.batch_size)
  before_s = _as_it_was_s(step)
  outcome = optimizer.optimize(source, settings, relocatable=True)
  row = {
      'graph': path, 'before_s': before_s,
      'after_s': before_s if outcome.after_s is None else outcome.after_s,
      'variables_moved': _variables_moved(source, outcome)
  }
  return {**row, **_best(step, settings, search_s)} if search_s else row


def on_first_gpu(source: source_graph.SourceGraph, cluster: cluster_lib.Cluster,
                 batch_size: int) -> source_graph.SourceGraph:
  """The graph as TensorFlow would place it on a machine like the cluster."""
  step = step_lib.of_source(source, cluster, batch_size=batch_size)
  placement = registry.create('gpu_only').place(step.problem())
  definition = graph_pb2.GraphDef()
  definition.CopyFrom(source.graph_def)
  for node, device in zip(definition.node, placement.device_strings()):
    node.device = device
  return dataclasses.replace(source, graph_def=definition,
                             devices=cluster.device_names)


def _as_it_was_s(step: step_lib.Step) -> float:
  devices = np.array(
      [step.cluster.device_index(name) for name in step.graph.devices])
  return step.simulator().evaluate(
      step.graph, placement_lib.Placement(devices, step.cluster)).step_time_s


def _variables_moved(source: source_graph.SourceGraph,
                     outcome: optimizer.Outcome) -> int:
  if outcome.devices is None:
    return 0
  return sum(
      pins.is_variable_argument(node) and device != node.device
      for node, device in zip(source.graph_def.node, outcome.devices))


def _best(step: step_lib.Step, settings: settings_lib.Settings,
          search_s: float) -> _Row:
  """The best of what the other placers find."""
  problem = dataclasses.replace(step.problem(seed=settings.seed),
                                time_budget_s=search_s)
  unfit = {entries.Need.EXPERT, entries.Need.KERAS_2}
  found: dict[str, float] = {}
  for name, entry in entries.table().items():
    if entry.needs & unfit or name == registry.DEFAULT:
      continue
    try:
      placement = registry.create(name).place(problem)
    except errors.GdpError:
      continue  # Its library is missing, or it has no answer to this graph.
    found[name] = control_edges.evaluate(step.graph,
                                         placement, step.simulator(),
                                         step.simulator()).step_time_s
  best = min(found, key=found.__getitem__)
  return {'best_s': found[best], 'best_by': best}


def _table(rows: Sequence[_Row], cluster: str) -> table.Table:
  result = table.Table(title=f'{cluster}, simulated')
  for column in ('graph', 'before', 'after', 'gain', 'variables moved', 'best',
                 'by'):
    result.add_column(column, justify='left' if column == 'graph' else 'right')
  for row in rows:
    result.add_row(row['graph'], _ms(row['before_s']), _ms(row['after_s']),
                   f'{row["before_s"] / row["after_s"]:.2f}x',
                   str(row['variables_moved']),
                   _ms(row['best_s']) if 'best_s' in row else '-',
                   row.get('best_by', '-'))
  return result


def _ms(seconds: float) -> str:
  return f'{seconds * 1e3:.1f} ms'


if __name__ == '__main__':
  sys.exit(main())
