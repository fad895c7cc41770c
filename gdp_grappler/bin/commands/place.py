"""`gdp place`: decide on the device of every op and write it down."""

from __future__ import annotations

import argparse
import json
import shlex
from typing import TYPE_CHECKING

from gdp_grappler import environment
from gdp_grappler import errors
from gdp_grappler import progress
from gdp_grappler import quiet
from gdp_grappler.bin import placer_docs
from gdp_grappler.bin.commands import common
from gdp_grappler.evaluation.ordering import order_names
from gdp_grappler.placers import placer_table
from gdp_grappler.placers import registry
from gdp_grappler.placers.policy import shipped_policy
from gdp_grappler.placers.search import search_config
from gdp_grappler.reports import units

if TYPE_CHECKING:
  from gdp_grappler.api import placed_step
  from gdp_grappler.problems import request as request_lib

# Relative gain that is too small to report.
_NO_GAIN = .001
# Module of the placer that runs the policy that ships.
_OF_POLICY = 'gdp_grappler.placers.policy.learned'


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
  """Declares the subcommand."""
  parser = commands.add_parser(
      'place', help='decide on the device of every op and write it down',
      epilog=placer_docs.text(),
      formatter_class=argparse.RawDescriptionHelpFormatter)
  common.add_priced_graph(parser)
  parser.add_argument(
      '--policy', help='folder of a network that gdp_train or gdp_pretrain '
      f'wrote, for the placer {registry.DEFAULT} or a --placer that needs a '
      'network; by default the networks that ship')
  how = parser.add_mutually_exclusive_group()
  how.add_argument(
      '--placer', help='one of the placers below; by default '
      f'{registry.DEFAULT}')
  how.add_argument(
      '--plan', help='a plan file, as written before, or a file with a map of '
      'layers, {"encoder": "GPU:0"}')
  parser.add_argument(
      '--output', required=True, help='.json for a plan, '
      '.pb or .pbtxt for a placed GraphDef')
  parser.add_argument(
      '--order', choices=order_names.ORDERS, help=
      ('critical_path: where a gain is predicted, write priorities into a plan '
       'or control edges into a GraphDef; by default the order of --plan, else '
       f'{order_names.DEFAULT}'))
  parser.add_argument(
      '--seed', type=common.not_negative, default=0, help=(
          'the same seed gives the same plan with --repeatable. Without it, a '
          'time budget or a busy machine may end the search early, and the '
          'plan may differ (default %(default)s)'))
  parser.add_argument(
      '--repeatable', action='store_true', help=(
          'end the search after a number of priced placements, and not by the '
          'clock, so that each run writes the same plan. Two idle cores price '
          'this number in --time_budget_s'))
  parser.add_argument(
      '--time_budget_s', type=common.seconds,
      help=('seconds that the search may take, once the graph has been read '
            '(default: the search decides); quick placers always run, which '
            'takes a second or two for a large graph'))
  parser.set_defaults(action=run)


def run(arguments: argparse.Namespace) -> int:
  """Places the graph, writes the plan and prints a summary."""
  progress.doing(f'reading {arguments.graph} for {arguments.cluster}')
  from gdp_grappler.api import arguments as arguments_lib
  from gdp_grappler.api import graph_defs
  from gdp_grappler.api import placing
  graph_defs.check_suffix(arguments.output)
  common.check_output(arguments.output, arguments)
  placer = arguments.placer or registry.DEFAULT
  arguments_lib.check_policy(placer, arguments.policy)
  # Some placers must be imported before TensorFlow, others import TensorFlow.
  with quiet.stderr_held():
    registry.factory(placer, arguments.policy)
  request = common.request(arguments)
  as_plan = arguments.output.endswith('.json')
  if request.given is not None and not as_plan:
    raise errors.GdpError(
        f'Cannot write {arguments.output}: {arguments.graph} has costs but no '
        'TensorFlow ops, so there is no GraphDef to place. End --output in '
        '.json for a plan.')
  where = common.cluster(arguments)
  common.load_what_it_needs(request, filter(None, [arguments.plan]))
  if _may_run_policy(registry.get(placer), arguments.policy,
                     arguments.time_budget_s or 0.):
    common.load_tensorflow()
  placed = placing.place(
      request, where, placer=placer, policy=arguments.policy,
      plan=arguments.plan, order=arguments.order, seed=arguments.seed,
      time_budget_s=arguments.time_budget_s, repeatable=arguments.repeatable,
      batch_size=arguments.batch_size, trip_count=arguments.trip_count,
      whole_graph=not as_plan, tell=common.tell)
  progress.doing(f'writing {arguments.output}')
  placed.save(arguments.output)
  said = _of_plan(placed) if as_plan else _of_graph_def(placed)
  common.say_words(f'{_line(placed)}{said}; {_on_one_device(placed)} -> '
                   f'{arguments.output}')
  common.warn_of(placed.warnings)
  if as_plan and not arguments.quiet:
    common.say(_next_steps(request, arguments.output, placed))
  return 0


def _next_steps(request: request_lib.Request, plan: str,
                placed: placed_step.PlacedStep) -> str:
  """Returns commands that a user may want to run with a plan."""
  graph = request.typed()
  option = f'--plan={shlex.quote(plan)}'
  lines = [
      'Next:', f'  gdp report {graph} {option} --output=report.html',
      f'  gdp explain {graph} {option} OP'
  ]
  from gdp_grappler.problems import reading
  # A workload of this package is not the user's program.
  if request.given is None and reading.workload(request) is None:
    setting = shlex.quote(json.dumps({'plan': plan, **_split(placed)}))
    lines.append(f'  {environment.PLACEMENT}={setting} python YOUR_PROGRAM.py')
  return '\n'.join([*lines, 'All words: gdp glossary.'])


def _split(placed: placed_step.PlacedStep) -> dict[str, dict[str, int]]:
  """Returns the options that split a program's tables as in the plan."""
  source = placed.step.source
  if source is None or not source.tables:
    return {}
  from gdp_grappler.graph.tables import finding

  # The option has layers; a graph that was rewritten has variables.
  found = {finding.layer_of(name): count for name, count in source.tables}
  return {'split_tables': found}


def _may_run_policy(placer: placer_table.Entry, policy: str | None,
                    time_budget_s: float) -> bool:
  """Whether a placer may run the policy, which TensorFlow computes.

  `gdp_one_shot` always does, other placers do if the user names a policy, and
  the default placer may in long searches. The move network needs no TensorFlow.
  If the placer itself loaded TensorFlow, in the background, TensorFlow's notes
  could not be hidden.

  Args:
    placer: The placer.
    policy: Folder that the user gave; None for that of GDP_POLICY, if any.
    time_budget_s: The user's time budget; 0 for none.
  """
  if placer.module == _OF_POLICY:
    return True
  if folder := policy or environment.policy_folder():
    from gdp_grappler.placers.policy import move_folder
    return (placer_table.Need.POLICY in placer.needs and
            not move_folder.is_here(folder))
  is_long = time_budget_s >= search_config.DEFAULT.time.policy_s
  return (is_long and placer.name == registry.DEFAULT and
          shipped_policy.has_policy())


def _line(placed: placed_step.PlacedStep) -> str:
  tensors, size = placed.placement.cut(placed.graph)
  counts = ', '.join(f'{d} {n}' for d, n in placed.placement.counts().items())
  return (f'{placed.graph.name}: {units.count(placed.graph.num_ops, "op")} '
          f'placed by {placed.placed_by}: {counts}; cut '
          f'{units.count(tensors, "tensor")}, '
          f'{units.amount(size, "B")}; predicted step '
          f'{units.ms(placed.fifo.step_time_s)} (simulated)')


def _on_one_device(placed: placed_step.PlacedStep) -> str:
  """Returns a text with the step time on one device."""
  alone = placed.on_one_device
  said = f'{units.ms(alone.step_time_s)} on {placed.where_alone}'
  if not alone.valid:
    return f'{said}, which lacks the memory'
  gains = placed.step_time_s < (1 - _NO_GAIN) * alone.step_time_s
  return said if gains else f'{said}: no gain'


def _of_plan(placed: placed_step.PlacedStep) -> str:
  """Returns a text about the order of a plan."""
  if placed.order == order_names.FIFO:
    return ''
  if placed.order_is_given:
    return '; ordered as in the plan'
  if placed.placement.priorities is None:
    return ('; first in, first out, as no control edges are '
            'predicted to pay')
  return f'; ordered: {units.ms(placed.step_time_s)}'


def _of_graph_def(placed: placed_step.PlacedStep) -> str:
  """Returns a text about the control edges of a placed GraphDef."""
  if placed.order == order_names.FIFO:
    return ''
  order = placed.control_edges
  if order is None or not len(order.control_edges):
    return '; no control edges, as none are predicted to pay'
  count = len(order.control_edges)
  return (f'; ordered by {count} control edge{"s" * (count > 1)}: '
          f'{units.ms(order.with_edges_s)}')
