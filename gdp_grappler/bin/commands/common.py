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
  parser.add_argument('--cluster', required=cluster_required,
                      help=cluster_help)
  parser.add_argument('--batch_size', type=positive, default=32, help=(
      'size of dimensions that the graph leaves open (default 32)'))
  parser.add_argument('--trip_count', type=positive, default=32, help=(
      'iterations of while loops whose number the graph does not tell '
      '(default 32)'))
  parser.add_argument('--profile', help='a profile of measured ops, as written '
                      'by `gdp profile`; by default the roofline')


def read(arguments, prune=True, cluster=None):
  """The graph as it came, as arrays, the cluster and its simulator.

  A graph with costs of its own came as no GraphDef: None stands for it, and
  TensorFlow is not imported.
  """
  # pylint: disable=g-import-not-at-top
  from gdp_grappler.evaluation import given_costs
  own = given_costs.load(arguments.graph)
  if own is None:
    load_tensorflow()
  elif arguments.profile:
    raise errors.GdpError(
        f'{arguments.graph} brings the costs of its ops, and --profile='
        f'{arguments.profile} would replace them. Leave out --profile.')
  from gdp_grappler.cluster import resolve
  from gdp_grappler.evaluation import simulator
  cluster = cluster or resolve.resolve(arguments.cluster)
  if own is not None:
    graph, costs = own
    return None, graph, cluster, simulator.Simulator(cluster, costs)
  source, graph = _read_tensorflow(arguments, prune)
  return source, graph, cluster, simulator.Simulator(
      cluster, _cost_model(arguments.profile, graph))


def _read_tensorflow(arguments, prune):
  # pylint: disable=g-import-not-at-top
  from gdp_grappler.graph import graph_def_io
  from gdp_grappler.graph import sources
  source = sources.load(arguments.graph, batch_size=arguments.batch_size,
                        prune=prune)
  return source, graph_def_io.read(
      source, unknown_dim=arguments.batch_size,
      trip_count=arguments.trip_count, tell=_tell)


def _tell(line):
  print(f'gdp: {line}', file=sys.stderr)


def _cost_model(path, graph):
  if path is None:
    return None
  from gdp_grappler.evaluation import profiled_costs  # pylint: disable=g-import-not-at-top
  return profiled_costs.from_file(path, graph)


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
  if not target.absolute().parent.is_dir():
    raise errors.GdpError(f'Cannot write {path}: its folder does not exist.')


def refuse_illegal(placement, graph):
  """Raises an error unless the placement keeps the graph's rules."""
  violations = placement.violations(graph)
  if violations:
    raise errors.InfeasiblePlacementError(
        f'The placement breaks {len(violations)} rules of {graph.name}, the '
        f'first: {violations[0].message}. Nothing was written.')


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
