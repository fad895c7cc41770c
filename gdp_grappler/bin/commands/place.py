"""`gdp place`: decide on the device of every op and write it down."""

from __future__ import annotations

import argparse
import dataclasses
import functools
from typing import Callable

import numpy as np

from gdp_grappler import errors
from gdp_grappler import quiet
from gdp_grappler.bin.commands import common
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.ordering import order as order_lib
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.placers import choosing
from gdp_grappler.placers import listing
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import registry
from gdp_grappler.placers import step as step_lib
from gdp_grappler.problems import help_texts
from gdp_grappler.problems import reading


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
  """Declares the subcommand."""
  parser = commands.add_parser(
      'place', help='decide on the device of every op and write it down',
      epilog=listing.text(),
      formatter_class=argparse.RawDescriptionHelpFormatter)
  common.add_priced_graph(parser)
  how = parser.add_mutually_exclusive_group()
  how.add_argument(
      '--policy', help='folder of a trained policy; by default '
      'the one that is shipped')
  how.add_argument(
      '--placer', help='one of the placers below; by default '
      f'{registry.DEFAULT}')
  how.add_argument('--plan', help='a plan file, as written before')
  parser.add_argument(
      '--output', required=True, help='.json for a plan, '
      '.pb or .pbtxt for a placed GraphDef')
  parser.add_argument(
      '--order', choices=order_lib.ORDERS, help=
      ('critical_path: where a gain is predicted, write priorities into a plan '
       'or control edges into a GraphDef; by default the order of --plan, else '
       f'{order_lib.DEFAULT}'))
  parser.add_argument('--seed', type=common.not_negative, default=0,
                      help=f'{help_texts.SEED} (default %(default)s)')
  parser.add_argument(
      '--time_budget_s', type=common.positive, help='seconds that a search may '
      'take; by default as many as each takes by itself')
  parser.set_defaults(action=run)


def run(arguments: argparse.Namespace) -> int:
  """Places, writes and says so."""
  from gdp_grappler.cluster import plan
  from gdp_grappler.cluster import resolve
  from gdp_grappler.cluster import whole_graph
  common.check_writable(arguments.output)
  name = arguments.placer or registry.DEFAULT
  # Some placers have to be imported before TensorFlow, others import it.
  with quiet.stderr_held():
    make_placer = registry.factory(name, arguments.policy)
  request = common.request(arguments)
  as_plan = arguments.output.endswith('.json')
  if request.given is not None and not as_plan:
    raise errors.GdpError(
        f'Cannot write {arguments.output}: {arguments.graph} has costs but no '
        'TensorFlow ops, so there is no GraphDef to place. End --output in '
        '.json for a plan.')
  step = common.read(request,
                     functools.partial(resolve.resolve, arguments.cluster))
  # A plan has the ops that run; a GraphDef is written with all its nodes.
  whole = None if as_plan else reading.whole(request, step)
  if whole is not None:
    step = dataclasses.replace(
        step, graph=whole_graph.with_rules(step.graph, whole.graph))
  name, placement, origin = _placement(arguments, name, make_placer, step)
  graph, simulator = step.graph, step.simulator()
  common.refuse_illegal(placement, graph, origin, 'Nothing was written.')
  if whole is None:
    placement, said = _prioritized(arguments, graph, placement, simulator)
    plan.save(arguments.output, graph, placement)
  else:
    edges, said = _edges(arguments, step, placement, simulator)
    _write(arguments.output, whole, graph, placement, edges)
  _report(arguments.output, graph, placement, simulator,
          f'{graph.num_ops} ops placed by {name}', said)
  return 0


def _placement(arguments: argparse.Namespace, name: str,
               make_placer: Callable[[], placer_lib.Placer],
               step: step_lib.Step) -> tuple[str, placement_lib.Placement, str]:
  """Whose it is, the devices, and what to call them."""
  from gdp_grappler.cluster import plan
  from gdp_grappler.evaluation.ordering import control_edges
  if arguments.plan:
    return (arguments.plan, plan.load(arguments.plan, step.graph, step.cluster),
            common.origin_of_plan(arguments.plan))
  simulator = step.simulator()
  ordered = arguments.order == order_lib.CRITICAL_PATH
  problem = dataclasses.replace(step.problem(seed=arguments.seed),
                                time_budget_s=arguments.time_budget_s,
                                simulator=simulator if ordered else None)
  found = choosing.proposals(make_placer(), problem)
  choice = choosing.best(
      problem, found, simulator, lambda _: control_edges.OrderConfig()
      if ordered else None)
  placement = choice.placement
  if choice.order is None:
    placement = dataclasses.replace(placement, priorities=None)
  return name, placement, f'The placement by {name}'


def _report(output: str, graph: op_graph.OpGraph,
            placement: placement_lib.Placement,
            simulator: simulator_lib.Simulator, done: str, said: str) -> None:
  from gdp_grappler.reports import units
  evaluation = simulator.evaluate(
      graph, dataclasses.replace(placement, priorities=None))
  tensors, size = placement.cut(graph)
  print(f'{graph.name}: {done}: '
        + ', '.join(f'{d} {n}' for d, n in placement.counts().items())
        + f'; cut {tensors} tensors, {units.amount(size, "B")}; predicted step '
        f'{evaluation.step_time_s * 1e3:.4g} ms (simulated){said}; '
        f'{_on_one_device(graph, simulator)} -> {output}')
  common.warn(evaluation)


def _on_one_device(graph: op_graph.OpGraph,
                   simulator: simulator_lib.Simulator) -> str:
  """What the step takes if nothing is spread that need not be."""
  problem = placer_lib.Problem(graph, simulator.cluster, simulator)
  placement = registry.create('single_device').place(problem)
  evaluation = simulator.evaluate(graph, placement)
  said = f'{evaluation.step_time_s * 1e3:.4g} ms on one device'
  return said if evaluation.valid else f'{said}, which has not the memory'


def _prioritized(
    arguments: argparse.Namespace, graph: op_graph.OpGraph,
    placement: placement_lib.Placement,
    simulator: simulator_lib.Simulator) -> tuple[placement_lib.Placement, str]:
  """The placement to save, and what to say of its order."""
  from gdp_grappler.evaluation.ordering import control_edges
  has_order = placement.priorities is not None
  placement = control_edges.in_order(graph, placement, simulator,
                                     arguments.order)
  if order_lib.chosen(arguments.order, has_order) == order_lib.FIFO:
    return placement, ''
  if arguments.plan and has_order:
    return placement, '; ordered as in the plan'
  if placement.priorities is None:
    return placement, ('; first in, first out, as no control edges are '
                       'predicted to pay')
  ordered_s = control_edges.evaluate(graph, placement, simulator,
                                     simulator).step_time_s
  return placement, f'; ordered: {ordered_s * 1e3:.4g} ms'


def _edges(arguments: argparse.Namespace, step: step_lib.Step,
           placement: placement_lib.Placement,
           simulator: simulator_lib.Simulator) -> tuple[np.ndarray, str]:
  """Control edges [C, 2] between ops of the step, and what to say of them."""
  has_order = placement.priorities is not None
  if order_lib.chosen(arguments.order, has_order) == order_lib.FIFO:
    return np.zeros((0, 2), int), ''
  edges, step_s = _control_edges(arguments, step, placement, simulator)
  if not len(edges):
    return edges, '; no control edges, as none are predicted to pay'
  return edges, (f'; ordered by {len(edges)} control edge'
                 f'{"s" * (len(edges) > 1)}: '
                 f'{step_s * 1e3:.4g} ms')


def _control_edges(
    arguments: argparse.Namespace, step: step_lib.Step,
    placement: placement_lib.Placement,
    simulator: simulator_lib.Simulator) -> tuple[np.ndarray, float]:
  """Edges, which make no step run what it does not need, and its seconds."""
  from gdp_grappler.evaluation.ordering import control_edges
  from gdp_grappler.graph.sources import pruning
  source = step.source
  assert source is not None  # Only what has TensorFlow ops gets edges.
  needed = pruning.needed(source.graph_def, source.fetches)
  runs = {node.name for node in needed.node}
  needed_step = step_lib.of_source(
      dataclasses.replace(
          source, graph_def=needed,
          feeds=tuple(feed for feed in source.feeds if feed in runs)),
      step.cluster, batch_size=arguments.batch_size,
      trip_count=arguments.trip_count)
  ops = np.array([i for i, name in enumerate(step.graph.names) if name in runs])
  order = control_edges.control_edges(
      needed_step.graph,
      placement_lib.Placement(
          placement.devices[ops], placement.cluster,
          None if placement.priorities is None else placement.priorities[ops]),
      simulator)
  return ops[order.control_edges], order.with_edges_s


def _write(path: str, whole: step_lib.Step, graph: op_graph.OpGraph,
           placement: placement_lib.Placement, edges: np.ndarray) -> None:
  """The whole graph, of which `graph` and the rest are the step."""
  from google.protobuf import text_format

  from gdp_grappler import files
  from gdp_grappler.cluster import whole_graph
  from gdp_grappler.graph import graph_def_io
  assert whole.source is not None  # `run` has refused graphs of costs alone.
  placement = whole_graph.extend(placement, graph, whole.graph)
  rows = whole_graph.positions(graph, whole.graph)
  placed = graph_def_io.write(
      whole.source.graph_def, placement.device_strings(),
      [(rows[first], rows[then]) for first, then in edges])
  files.write_atomically(
      path,
      text_format.MessageToString(placed).encode()
      if path.endswith('.pbtxt') else placed.SerializeToString())
