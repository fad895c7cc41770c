"""`gdp place`: decide on the device of every op and write it down."""

from __future__ import annotations

from gdp_grappler.bin.commands import common


def add(commands) -> None:
  """Declares the subcommand."""
  parser = commands.add_parser(
      'place', help='decide on the device of every op and write it down')
  common.add_graph(parser)
  how = parser.add_mutually_exclusive_group()
  how.add_argument('--policy', help='folder of a trained policy; by default '
                   'the one that is shipped')
  how.add_argument('--placer', help='random, metis, single_device, ...')
  how.add_argument('--plan', help='a plan file, as written before')
  parser.add_argument('--output', required=True, help='.json for a plan, '
                      '.pb or .pbtxt for a placed GraphDef')
  parser.add_argument('--seed', type=common.not_negative, default=0)
  parser.set_defaults(action=run)


def run(arguments) -> int:
  """Places, writes and says so."""
  # pylint: disable=g-import-not-at-top
  from gdp_grappler.cluster import plan
  from gdp_grappler.placers import placer as placer_lib
  from gdp_grappler.placers import registry
  common.check_writable(arguments.output)
  # A GraphDef is written with all its nodes; a plan needs those that run.
  source, graph, cluster, simulator = common.read(
      arguments, prune=arguments.output.endswith('.json'))
  if arguments.plan:
    name, placement = arguments.plan, plan.load(arguments.plan, graph, cluster)
  else:
    name = arguments.placer or registry.LEARNED
    placement = registry.create(name, arguments.policy).place(
        placer_lib.Problem(graph, cluster, simulator, arguments.seed))
  common.refuse_illegal(placement, graph)
  _write(arguments.output, source, graph, placement)
  evaluation = simulator.evaluate(graph, placement)
  tensors, size = placement.cut(graph)
  print(f'{graph.name}: {graph.num_ops} ops placed by {name}: '
        + ', '.join(f'{d} {n}' for d, n in placement.counts().items())
        + f'; cut {tensors} tensors, {size / 1e6:.2f} MB; predicted step '
        f'{evaluation.step_time_s * 1e3:.4g} ms (simulated) -> '
        f'{arguments.output}')
  common.warn(evaluation)
  return 0


def _write(path, source, graph, placement):
  # pylint: disable=g-import-not-at-top
  from google.protobuf import text_format

  from gdp_grappler import files
  from gdp_grappler.cluster import plan
  from gdp_grappler.graph import graph_def_io
  if path.endswith('.json'):
    plan.save(path, graph, placement)
    return
  placed = graph_def_io.write(source.graph_def, placement.device_strings())
  files.write_atomically(
      path, text_format.MessageToString(placed).encode()
      if path.endswith('.pbtxt') else placed.SerializeToString())
