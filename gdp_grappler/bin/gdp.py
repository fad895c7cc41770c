"""`gdp`: place a graph, price a plan, print a cluster, check the set-up."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pathlib
import sys
from typing import Sequence

from gdp_grappler import errors
from gdp_grappler import quiet

# This process reads graphs; nothing in it is to be placed by the plugin.
os.environ['GDP_DISABLE'] = '1'
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')

_GRAPH_HELP = ('a captured graph, SavedModel folder, .keras file, GraphDef or '
               'MetaGraph (.pb, .pbtxt, .meta), or module:function that '
               'returns a Keras model')
_CLUSTER_HELP = "preset (2xP100, 4xP100, 8xP100), 'local', or a cluster file"


def run(argv: Sequence[str] | None = None) -> int:
  """Runs one subcommand.

  Args:
    argv: Arguments after the program's name; `sys.argv` if None.

  Returns:
    0, or 1 if the doctor found something wrong, or 2 for bad input.
  """
  arguments = _parser().parse_args(argv)
  try:
    code = arguments.action(arguments)
    sys.stdout.flush()
    return code
  except BrokenPipeError:
    # Whoever read the output has enough, as `head` does.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
  except errors.GdpError as error:
    print(f'gdp: error: {error}', file=sys.stderr)
    return 2
  except KeyboardInterrupt:
    print('gdp: interrupted', file=sys.stderr)
    return 130


def _parser() -> argparse.ArgumentParser:
  parser = argparse.ArgumentParser(
      prog='gdp', description='Device placement for TensorFlow graphs.')
  commands = parser.add_subparsers(required=True, metavar='COMMAND')
  place = commands.add_parser(
      'place', help='decide on the device of every op and write it down')
  place.add_argument('graph', help=_GRAPH_HELP)
  place.add_argument('--cluster', required=True, help=_CLUSTER_HELP)
  how = place.add_mutually_exclusive_group()
  how.add_argument('--policy', help='folder of a trained policy; by default '
                   'the one that is shipped')
  how.add_argument('--placer', help='random, metis, single_device, ...')
  how.add_argument('--plan', help='a plan file, as written before')
  place.add_argument('--output', required=True, help='.json for a plan, '
                     '.pb or .pbtxt for a placed GraphDef')
  place.add_argument('--seed', type=_not_negative, default=0)
  place.set_defaults(action=_place)
  simulate = commands.add_parser(
      'simulate', help='price a plan, and draw its schedule')
  simulate.add_argument('graph', help=_GRAPH_HELP)
  simulate.add_argument('--cluster', required=True, help=_CLUSTER_HELP)
  simulate.add_argument('--plan', required=True, help='a plan file')
  simulate.add_argument('--trace', help='write a Chrome trace to this file')
  simulate.add_argument('--json', action='store_true', help='print JSON')
  simulate.set_defaults(action=_simulate)
  for command in (place, simulate):
    command.add_argument('--batch_size', type=_positive, default=32, help=(
        'size of dimensions that the graph leaves open (default 32)'))
  cluster = commands.add_parser('cluster', help='print a cluster as JSON')
  cluster.add_argument('cluster', help=_CLUSTER_HELP)
  cluster.set_defaults(action=_cluster)
  doctor = commands.add_parser('doctor', help='check the installation')
  doctor.add_argument('--policy', help='a policy folder to check as well')
  doctor.set_defaults(action=_doctor)
  return parser


def _place(arguments) -> int:
  # pylint: disable=g-import-not-at-top
  from gdp_grappler.cluster import plan
  from gdp_grappler.placers import placer as placer_lib
  from gdp_grappler.placers import registry
  _check_writable(arguments.output)
  # A GraphDef is written with all its nodes; a plan needs those that run.
  source, graph, cluster, simulator = _read(
      arguments, prune=arguments.output.endswith('.json'))
  if arguments.plan:
    name, placement = arguments.plan, plan.load(arguments.plan, graph, cluster)
  else:
    name = arguments.placer or registry.LEARNED
    placement = registry.create(name, arguments.policy).place(
        placer_lib.Problem(graph, cluster, simulator, arguments.seed))
  _refuse_illegal(placement, graph)
  _write(arguments.output, source, graph, placement)
  evaluation = simulator.evaluate(graph, placement)
  tensors, size = placement.cut(graph)
  print(f'{graph.name}: {graph.num_ops} ops placed by {name}: '
        + ', '.join(f'{d} {n}' for d, n in placement.counts().items())
        + f'; cut {tensors} tensors, {size / 1e6:.2f} MB; predicted step '
        f'{evaluation.step_time_s * 1e3:.4g} ms (simulated) -> '
        f'{arguments.output}')
  _warn(evaluation)
  return 0


def _simulate(arguments) -> int:
  # pylint: disable=g-import-not-at-top
  from gdp_grappler.cluster import plan
  from gdp_grappler.reports import timeline
  _, graph, cluster, simulator = _read(arguments)
  placement = plan.load(arguments.plan, graph, cluster)
  _refuse_illegal(placement, graph)
  evaluation = simulator.evaluate(graph, placement)
  if arguments.trace:
    timeline.write_chrome_trace(arguments.trace, graph,
                                simulator.schedule(graph, placement), placement)
  if arguments.json:
    print(json.dumps({
        'graph': graph.name, 'cluster': cluster.name, 'simulated': True,
        'step_time_s': evaluation.step_time_s, 'valid': evaluation.valid,
        'peak_bytes': list(evaluation.peak_bytes),
        'violations': [v.message for v in evaluation.violations]}))
  else:
    print(f'{graph.name}: {graph.num_ops} ops on {cluster.name}: step '
          f'{evaluation.step_time_s * 1e3:.4g} ms (simulated); peak '
          + ', '.join(f'{b / 1e9:.2f} GB' for b in evaluation.peak_bytes))
    _warn(evaluation)
  return 0


def _cluster(arguments) -> int:
  if arguments.cluster == 'local':
    _load_tensorflow()
  from gdp_grappler.cluster import resolve  # pylint: disable=g-import-not-at-top
  print(resolve.resolve(arguments.cluster).to_json())
  return 0


def _doctor(arguments) -> int:
  _load_tensorflow()
  from gdp_grappler.plugin import doctor  # pylint: disable=g-import-not-at-top
  findings = doctor.examine(arguments.policy)
  for finding in findings:
    print(f'{finding.state:4}  {finding.what}: {finding.detail}')
    if finding.remedy:
      print(f'      -> {finding.remedy}')
  wrong = sum(finding.state == doctor.BAD for finding in findings)
  print('All is well.' if not wrong else f'{wrong} of {len(findings)} checks '
        'failed.')
  return 1 if wrong else 0


def _read(arguments, prune=True):
  """The graph as it came, as arrays, the cluster and its simulator."""
  _load_tensorflow()
  # pylint: disable=g-import-not-at-top
  from gdp_grappler.cluster import resolve
  from gdp_grappler.evaluation import simulator
  from gdp_grappler.graph import graph_def_io
  from gdp_grappler.graph import sources
  cluster = resolve.resolve(arguments.cluster)
  source = sources.load(arguments.graph, batch_size=arguments.batch_size,
                        prune=prune)
  graph = graph_def_io.read(source, unknown_dim=arguments.batch_size)
  return source, graph, cluster, simulator.Simulator(cluster)


def _load_tensorflow():
  """Imports it for later, without the notes of its start-up."""
  with quiet.stderr_held():
    importlib.import_module('tensorflow').config.list_logical_devices()


def _check_writable(path):
  """Fails before the work, not after it."""
  target = pathlib.Path(path)
  if target.suffix not in ('.json', '.pb', '.pbtxt'):
    raise errors.GdpError(f'Cannot tell what to write to {path}: end its name '
                          'in .json (plan), .pb or .pbtxt (GraphDef).')
  if not target.absolute().parent.is_dir():
    raise errors.GdpError(f'Cannot write {path}: its folder does not exist.')


def _refuse_illegal(placement, graph):
  violations = placement.violations(graph)
  if violations:
    raise errors.InfeasiblePlacementError(
        f'The placement breaks {len(violations)} rules of {graph.name}, the '
        f'first: {violations[0].message}. Nothing was written.')


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


def _warn(evaluation):
  for violation in evaluation.violations:
    print(f'gdp: warning: {violation.message}', file=sys.stderr)


def _positive(text: str) -> int:
  value = int(text)
  if value < 1:
    raise argparse.ArgumentTypeError(f'{text} is not a positive number')
  return value


def _not_negative(text: str) -> int:
  value = int(text)
  if value < 0:
    raise argparse.ArgumentTypeError(f'{text} is negative')
  return value


if __name__ == '__main__':
  sys.exit(run())
