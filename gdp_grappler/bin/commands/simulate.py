"""`gdp simulate`: price a plan in both orders, and draw its step."""

from __future__ import annotations

import argparse
import json
import os
import shlex
from typing import Any, TYPE_CHECKING

from gdp_grappler import errors
from gdp_grappler import extras
from gdp_grappler import files
from gdp_grappler import progress
from gdp_grappler.bin.commands import common
from gdp_grappler.evaluation.ordering import order_names
from gdp_grappler.reports import units

if TYPE_CHECKING:
  from gdp_grappler.cluster import cluster as cluster_lib
  from gdp_grappler.evaluation import evaluator as evaluator_lib


def add(commands: Any) -> None:
  """Declares the subcommand."""
  parser = commands.add_parser('simulate',
                               help='price a plan, and draw its schedule')
  common.add_plan(parser)
  parser.add_argument(
      '--order', choices=order_names.ORDERS, help=
      ('order of ready ops in the trace and for all figures but the step '
       'times, which are printed for both orders; by default that of the plan: '
       f'critical_path if it has priorities, else {order_names.DEFAULT}'))
  parser.add_argument('--trace', type=common.json_file, metavar='FILE.json',
                      help='write a Chrome trace to this file')
  parser.add_argument(
      '--tensorboard', metavar='FOLDER',
      help="write TensorBoard's events to this folder: the graph by device, "
      'the plan as text, its timeline')
  parser.add_argument(
      '--node_data', type=common.json_file, metavar='FILE.json',
      help='write the devices to this file, as node data for Model Explorer, '
      'and the graph for it to FILE.graph.json')
  parser.add_argument(
      '--emulated', action='store_true',
      help="run the step on emulated GPUs as well: TensorFlow's own runtime "
      'decides when each op runs, and ops take the same seconds')
  parser.add_argument('--json', action='store_true', help='print JSON')
  parser.set_defaults(action=run)


def run(arguments: argparse.Namespace) -> int:
  """Prices the plan, writes the pictures and prints the price."""
  outputs = [*filter(None, (arguments.trace, arguments.node_data))]
  if arguments.node_data:
    from gdp_grappler.reports import model_explorer
    outputs.append(str(model_explorer.beside(arguments.node_data)))
  for path in outputs:
    common.check_output(path, arguments)
  if len(set(map(os.path.realpath, outputs))) < len(outputs):
    raise errors.GdpError(
        f'Cannot write {arguments.trace}: --trace and --node_data would write '
        'the same file. Name another place.')
  if arguments.tensorboard:
    files.check_folder(arguments.tensorboard)
    extras.require('A timeline for TensorBoard', 'PIL')
    common.load_tensorflow()
  placed = common.planned_step(arguments, arguments.plan)
  graph, cluster = placed.graph, placed.step.cluster
  progress.doing(f'pricing {units.count(graph.num_ops, "op")} in both orders')
  result = placed.price(arguments.order)
  if arguments.trace:
    placed.write_trace(arguments.trace, arguments.order)
  if arguments.tensorboard:
    placed.write_tensorboard(arguments.tensorboard, arguments.order)
  beside = (placed.write_node_data(arguments.node_data)
            if arguments.node_data else None)
  if arguments.emulated:
    progress.doing('running it on emulated GPUs')
  emulated = placed.emulate(arguments.order) if arguments.emulated else None
  if arguments.json:
    common.say(json.dumps({**result.to_json(graph), **_as_json(emulated)}))
  else:
    ordered = ('with control edges for the priorities of the plan'
               if placed.order_is_given else 'with control edges')
    common.say_words(
        f'{graph.name}: {units.count(graph.num_ops, "op")} on '
        f'{cluster.name}: step '
        f'{units.ms(result.fifo_s)} first in, first out, '
        f'{units.ms(result.ordered_s)} {ordered} (simulated); peak memory '
        f'with --order={result.order}: '
        + _peaks(cluster, result.evaluation.peak_bytes))
    common.warn(result.evaluation)
    if emulated:
      common.say_words(f'emulated with --order={result.order}: step '
                       f'{units.ms(emulated.step_time_s)}; peak memory '
                       + _peaks(cluster, emulated.peak_bytes))
      common.warn(emulated)
    if beside and not arguments.quiet:
      common.say('Next: ' + shlex.join([
          'model-explorer',
          str(beside), f'--node_data_paths={arguments.node_data}'
      ]))
    common.say_where_words_are(arguments)
  return 0


def _as_json(emulated: evaluator_lib.Evaluation | None) -> dict[str, object]:
  if emulated is None:
    return {}
  return {
      'emulated_step_time_s': emulated.step_time_s if emulated.valid else None,
      'emulated_peak_bytes': list(emulated.peak_bytes),
      'emulated_violations': [v.message for v in emulated.violations]
  }


def _peaks(cluster: cluster_lib.Cluster, peak_bytes: tuple[int, ...]) -> str:
  """Returns 'CPU:0 1.2 MB, GPU:0 3 GB'; shared memories appear once."""
  from gdp_grappler.reports import device_work
  return ', '.join(
      f'{name} {units.amount(size, "B")}'
      for name, size in zip(device_work.pool_names(cluster), peak_bytes))
