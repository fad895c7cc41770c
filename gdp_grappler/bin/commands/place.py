"""`gdp place`: decide on the device of every op and write it down."""

from __future__ import annotations

import argparse
import dataclasses

from gdp_grappler import errors
from gdp_grappler.bin.commands import common
from gdp_grappler.placers import listing


def add(commands) -> None:
  """Declares the subcommand."""
  parser = commands.add_parser(
      'place', help='decide on the device of every op and write it down',
      epilog=listing.text(),
      formatter_class=argparse.RawDescriptionHelpFormatter)
  common.add_graph(parser)
  how = parser.add_mutually_exclusive_group()
  how.add_argument(
      '--policy', help='folder of a trained policy; by default '
      'the one that is shipped')
  how.add_argument('--placer', help='one of the placers below')
  how.add_argument('--plan', help='a plan file, as written before')
  parser.add_argument(
      '--output', required=True, help='.json for a plan, '
      '.pb or .pbtxt for a placed GraphDef')
  parser.add_argument(
      '--order', choices=('fifo', 'critical_path'), help=
      ('critical_path: where a gain is predicted, write priorities into a plan '
       'or control edges into a GraphDef; by default the order of --plan, else '
       'fifo'))
  parser.add_argument('--seed', type=common.not_negative, default=0)
  parser.set_defaults(action=run)


def run(arguments) -> int:
  """Places, writes and says so."""
  from gdp_grappler.cluster import plan
  from gdp_grappler.cluster import whole_graph
  from gdp_grappler.placers import placer as placer_lib
  from gdp_grappler.placers import registry
  from gdp_grappler.reports import units
  common.check_writable(arguments.output)
  name = arguments.placer or registry.LEARNED
  make_placer = registry.factory(name, arguments.policy)
  source, graph, cluster, simulator = common.read(arguments)
  as_plan = arguments.output.endswith('.json')
  if source is None and not as_plan:
    raise errors.GdpError(
        f'Cannot write {arguments.output}: {arguments.graph} has costs but no '
        'TensorFlow ops, so there is no GraphDef to place. End --output in '
        '.json for a plan.')
  # A plan has the ops that run; a GraphDef is written with all its nodes.
  whole = None if as_plan else common.read_whole(arguments, source, graph)
  if whole is not None:
    graph = whole_graph.with_rules(graph, whole[1])
  if arguments.plan:
    name, placement = arguments.plan, plan.load(arguments.plan, graph, cluster)
    origin = common.origin_of_plan(name)
  else:
    placement = make_placer().place(
        placer_lib.Problem(graph, cluster, simulator, arguments.seed))
    origin = f'The placement by {name}'
  common.refuse_illegal(placement, graph, origin, 'Nothing was written.')
  if whole is None:
    placement, said = _prioritized(arguments.order, graph, placement, simulator)
    plan.save(arguments.output, graph, placement)
  else:
    edges, said = _edges(arguments, source, graph, placement, simulator)
    _write(arguments.output, *whole, graph, placement, edges)
  evaluation = simulator.evaluate(
      graph, dataclasses.replace(placement, priorities=None))
  tensors, size = placement.cut(graph)
  print(f'{graph.name}: {graph.num_ops} ops placed by {name}: '
        + ', '.join(f'{d} {n}' for d, n in placement.counts().items())
        + f'; cut {tensors} tensors, {units.amount(size, "B")}; predicted step '
        f'{evaluation.step_time_s * 1e3:.4g} ms (simulated){said} -> '
        f'{arguments.output}')
  common.warn(evaluation)
  return 0


def _is_ordered(order, placement):
  """Whether an order is asked for, or the plan has one that is to be kept."""
  from gdp_grappler.evaluation.ordering import ordering
  return order == ordering.CRITICAL_PATH or (order is None and
                                             placement.priorities is not None)


def _prioritized(order, graph, placement, simulator):
  """The placement to save, and what to say of its order."""
  from gdp_grappler.evaluation.ordering import ordering
  if not _is_ordered(order, placement):
    return dataclasses.replace(placement, priorities=None), ''
  if placement.priorities is not None:
    return placement, '; ordered as in the plan'
  best = ordering.best_order(graph, placement, simulator)
  return best.placement, (
      f'; ordered by the critical path: {best.ordered_s * 1e3:.4g} ms'
      if best.order == ordering.CRITICAL_PATH else
      '; first in, first out, as the critical path first gives no gain')


def _edges(arguments, source, graph, placement, simulator):
  """Control edges [C, 2] between ops of the step, and what to say of them."""
  if not _is_ordered(arguments.order, placement):
    return (), ''
  edges, order = _control_edges(source, graph, placement, simulator, arguments)
  if not len(edges):
    return edges, '; no control edges, as none are predicted to pay'
  return edges, (f'; ordered by {len(edges)} control edge'
                 f'{"s" * (len(edges) > 1)}: '
                 f'{order.with_edges_s * 1e3:.4g} ms')


def _control_edges(source, graph, placement, simulator, arguments):
  """Edges for a step: an edge must not make it run what it does not need."""
  import numpy as np

  from gdp_grappler.cluster import placement as placement_lib
  from gdp_grappler.evaluation.ordering import control_edges
  from gdp_grappler.graph import graph_def_io
  from gdp_grappler.graph.sources import pruning
  step = dataclasses.replace(
      source, graph_def=pruning.needed(source.graph_def, source.fetches))
  runs = {node.name for node in step.graph_def.node}
  step = dataclasses.replace(
      step, feeds=tuple(feed for feed in source.feeds if feed in runs))
  ops = np.array([i for i, name in enumerate(graph.names) if name in runs])
  order = control_edges.control_edges(
      graph_def_io.read(step, unknown_dim=arguments.batch_size,
                        trip_count=arguments.trip_count),
      placement_lib.Placement(
          placement.devices[ops], placement.cluster,
          None if placement.priorities is None else placement.priorities[ops]),
      simulator)
  return ops[order.control_edges], order


def _write(path, source, whole, graph, placement, edges):
  """The whole graph, of which `graph` and the rest are the step."""
  from google.protobuf import text_format

  from gdp_grappler import files
  from gdp_grappler.cluster import whole_graph
  from gdp_grappler.graph import graph_def_io
  placement = whole_graph.extend(placement, graph, whole)
  rows = whole_graph.positions(graph, whole)
  placed = graph_def_io.write(
      source.graph_def, placement.device_strings(),
      [(rows[first], rows[then]) for first, then in edges])
  files.write_atomically(
      path,
      text_format.MessageToString(placed).encode()
      if path.endswith('.pbtxt') else placed.SerializeToString())
