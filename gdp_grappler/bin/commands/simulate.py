"""`gdp simulate`: price a plan in both orders, and draw its schedule."""

from __future__ import annotations

import argparse
import json
from typing import Any, TYPE_CHECKING

from gdp_grappler.bin.commands import common
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.evaluation.ordering import order as order_lib
from gdp_grappler.problems import help_texts

if TYPE_CHECKING:
  from gdp_grappler.cluster import placement as placement_lib
  from gdp_grappler.evaluation import evaluator as evaluator_lib
  from gdp_grappler.placers import step as step_lib


def add(commands: Any) -> None:
  """Declares the subcommand."""
  parser = commands.add_parser('simulate',
                               help='price a plan, and draw its schedule')
  common.add_priced_graph(parser,
                          f"{help_texts.CLUSTER}; by default the plan's own",
                          cluster_required=False)
  parser.add_argument('--plan', required=True, help='a plan file')
  parser.add_argument(
      '--order', choices=order_lib.ORDERS, help=
      ('of ready ops, in the trace and for all figures but the step times; by '
       "default the plan's: critical_path if it has priorities, else "
       f'{order_lib.DEFAULT}'))
  parser.add_argument('--trace', help='write a Chrome trace to this file')
  parser.add_argument(
      '--emulated', action='store_true',
      help="run it on emulated GPUs as well: by TensorFlow's own runtime, "
      'which decides what runs when, with the same seconds of ops')
  parser.add_argument('--json', action='store_true', help='print JSON')
  parser.set_defaults(action=run)


def run(arguments: argparse.Namespace) -> int:
  """Prices, draws and says so."""
  from gdp_grappler.cluster import plan
  from gdp_grappler.cluster import resolve
  from gdp_grappler.evaluation import price
  from gdp_grappler.reports import timeline
  if arguments.trace:
    common.check_folder(arguments.trace)
  own = plan.read(arguments.plan)
  name = arguments.cluster
  step = common.read(
      common.request(arguments), lambda devices:
      (resolve.resolve(name, devices) if name else own.cluster))
  graph, cluster = step.graph, step.cluster
  placement = plan.load(arguments.plan, graph, cluster)
  common.refuse_illegal(placement, graph, common.origin_of_plan(arguments.plan),
                        'Correct it, or place the graph again.')
  result = price.price(graph, placement, step.simulator(), arguments.order)
  if arguments.trace:
    timeline.write_chrome_trace(arguments.trace, graph, result.schedule,
                                result.placement)
  emulated = _emulated(step, result.placement) if arguments.emulated else None
  if arguments.json:
    print(json.dumps({**result.to_json(graph), **_as_json(emulated)}))
  else:
    ordered = ('with control edges' if own.priorities is None else
               'with control edges for the priorities of the plan')
    print(f'{graph.name}: {graph.num_ops} ops on {cluster.name}: step '
          f'{result.fifo_s * 1e3:.4g} ms first in, first out, '
          f'{result.ordered_s * 1e3:.4g} ms {ordered} (simulated); peak memory '
          f'with --order={result.order}: '
          + _peaks(cluster, result.evaluation.peak_bytes))
    common.warn(result.evaluation)
    if emulated:
      print(f'emulated with --order={result.order}: step '
            f'{emulated.step_time_s * 1e3:.4g} ms; peak memory '
            + _peaks(cluster, emulated.peak_bytes))
      common.warn(emulated)
  return 0


def _emulated(step: step_lib.Step,
              placement: placement_lib.Placement) -> evaluator_lib.Evaluation:
  from gdp_grappler.evaluation.emulation import emulator as emulator_lib
  with emulator_lib.Emulator(step.cluster, step.cost_model) as emulator:
    return emulator.evaluate(step.graph, placement)


def _as_json(emulated: evaluator_lib.Evaluation | None) -> dict[str, object]:
  if emulated is None:
    return {}
  return {
      'emulated_step_time_s': emulated.step_time_s if emulated.valid else None,
      'emulated_peak_bytes': list(emulated.peak_bytes),
      'emulated_violations': [v.message for v in emulated.violations]
  }


def _peaks(cluster: cluster_lib.Cluster, peak_bytes: tuple[int, ...]) -> str:
  """'CPU:0 1.2 MB, GPU:0 3 GB'; devices of one memory together."""
  from gdp_grappler.reports import units
  pools = cluster.memory_pools
  return ', '.join(
      ' + '.join(label for label, own in zip(cluster.device_labels, pools)
                 if own == pool) + ' ' + units.amount(size, 'B')
      for pool, size in enumerate(peak_bytes))
