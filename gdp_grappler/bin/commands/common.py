"""What several subcommands share: their arguments, reading, complaining."""

from __future__ import annotations

import argparse
import importlib
import pathlib
import sys

from gdp_grappler import errors
from gdp_grappler import quiet

GRAPH_HELP = ('a captured graph, SavedModel folder, .keras file, GraphDef or '
              'MetaGraph (.pb, .pbtxt, .meta), module:function that returns a '
              'Keras model, or keras_applications:NAME')
# What is not run, only placed and priced, need not be TensorFlow's.
PRICED_HELP = (f'{GRAPH_HELP}; or a graph with costs of its own: a '
               'CostGraphDef or RunMetadata, or JSON as docs/graph_json.md '
               'describes it')
CLUSTER_HELP = ("preset (such as 2xP100, 8xV100, 2xP100+2xK40, 2x8xA100-ib), "
                "'local', grpc://host:port, or a cluster file; `gdp cluster "
                "--help` has the grammar")


def add_graph(parser: argparse.ArgumentParser, cluster_help: str = CLUSTER_HELP,
              cluster_required: bool = True) -> None:
  """The arguments that `read` takes."""
  parser.add_argument('graph', help=PRICED_HELP)
  parser.add_argument('--cluster', required=cluster_required, help=cluster_help)
  parser.add_argument(
      '--batch_size', type=positive, default=32,
      help=('size of dimensions that the graph leaves open (default 32)'))
  parser.add_argument(
      '--trip_count', type=positive, default=32,
      help=('iterations of while loops whose number the graph does not tell '
            '(default 32)'))
  parser.add_argument(
      '--profile', help='a profile of measured ops, as written '
      'by `gdp profile`; by default the roofline')


def read(arguments, cluster=None):
  """The step as it came, as arrays, the cluster and its simulator.

  A graph with costs of its own came as no GraphDef: None stands for it, and
  TensorFlow is not imported.
  """
  from gdp_grappler.evaluation.costs import given_costs
  own = given_costs.load(arguments.graph)
  if own is None:
    load_tensorflow()
  elif arguments.profile:
    raise errors.GdpError(
        f'{arguments.graph} brings the costs of its ops, and --profile='
        f'{arguments.profile} would replace them. Leave out --profile.')
  from gdp_grappler.cluster import resolve
  from gdp_grappler.evaluation.simulation import simulator
  cluster = cluster or resolve.resolve(arguments.cluster)
  if own is not None:
    graph, costs = own
    return None, graph, cluster, simulator.Simulator(cluster, costs)
  source, graph = _read_tensorflow(arguments, True, _tell)
  return source, graph, cluster, simulator.Simulator(
      cluster, _cost_model(arguments.profile, graph, cluster))


def read_whole(arguments, source, graph):
  """A step and its arrays, with what no step runs, such as initializers."""
  from gdp_grappler.graph.sources import graph_files
  # Other kinds, and captured graphs, are read as they run.
  if not pathlib.Path(arguments.graph).is_file() or graph_files.read(
      arguments.graph).kind != 'meta_graph':
    return source, graph
  return _read_tensorflow(arguments, False, None)


def _read_tensorflow(arguments, prune, tell):
  from gdp_grappler.graph import graph_def_io
  from gdp_grappler.graph.sources import sources
  source = sources.load(arguments.graph, batch_size=arguments.batch_size,
                        prune=prune)
  return source, graph_def_io.read(source, unknown_dim=arguments.batch_size,
                                   trip_count=arguments.trip_count, tell=tell)


def _tell(line):
  print(f'gdp: {line}', file=sys.stderr)


def _cost_model(path, graph, cluster):
  if path is None:
    return None
  from gdp_grappler.evaluation.costs import profiled_costs
  costs = profiled_costs.from_file(path, graph)
  _tell(_describe_coverage(path, costs, graph, cluster))
  return costs


def _describe_coverage(path, costs, graph, cluster) -> str:
  """Which devices and ops a profile is about, and which it is not."""
  measured, lacking = [], []
  for device, label in zip(cluster.devices, cluster.device_labels):
    known = costs.profile.of(device.name, device.type) is not None
    (measured if known else lacking).append(label)
  parts = []
  if measured:
    parts.append(f'{", ".join(measured)}: {costs.coverage(graph)}')
  if lacking:
    parts.append(f'{", ".join(lacking)}: all ops on the roofline, as no such '
                 'device was profiled')
  return f'Profile {path} of "{costs.profile.graph}": ' + '; '.join(parts) + '.'


def load_tensorflow():
  """Imports it for later, without the notes of its start-up."""
  with quiet.stderr_held():
    importlib.import_module('tensorflow').config.list_logical_devices()


def check_writable(path):
  """Fails before the work, not after it."""
  target = pathlib.Path(path)
  if target.suffix not in ('.json', '.pb', '.pbtxt'):
    raise errors.GdpError(f'Cannot tell what to write to {path}: end its name '
                          'in .json (plan), .pb or .pbtxt (GraphDef).')
  check_folder(path)


def check_folder(path):
  """Fails before the work if a file cannot be written where it is to be."""
  target = pathlib.Path(path).absolute()
  if not target.parent.is_dir():
    raise errors.GdpError(f'Cannot write {path}: its folder does not exist.')
  if target.is_dir():
    raise errors.GdpError(f'Cannot write {path}: it is a folder.')


def refuse_illegal(placement, graph, origin, remedy):
  """Raises an error unless the placement keeps the graph's rules."""
  violations = placement.violations(graph)
  if violations:
    count = len(violations)
    raise errors.InfeasiblePlacementError(
        f'{origin} breaks {count} rule{"s" * (count > 1)} of graph '
        f'"{graph.name}", such as: {violations[0].message}. {remedy}')


def origin_of_plan(path):
  """What to call the devices that a plan file gives."""
  return f'"devices" of plan {path}'


def warn(evaluation):
  """Prints what makes an evaluation invalid."""
  for violation in evaluation.violations:
    print(f'gdp: warning: {violation.message}', file=sys.stderr)


def positive(text: str) -> int:
  """An argument of 1 or more."""
  value = int(text)
  if value < 1:
    raise argparse.ArgumentTypeError(f'{text} is not a positive number')
  return value


def not_negative(text: str) -> int:
  """An argument of 0 or more."""
  value = int(text)
  if value < 0:
    raise argparse.ArgumentTypeError(f'{text} is negative')
  return value
