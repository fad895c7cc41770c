"""What several subcommands share: their arguments, reading, complaining."""

from __future__ import annotations

import argparse
import importlib
import pathlib
import sys

from gdp_grappler import errors
from gdp_grappler import quiet

GRAPH_HELP = ('a captured graph, SavedModel folder, .keras file, GraphDef or '
               'MetaGraph (.pb, .pbtxt, .meta), or module:function that '
               'returns a Keras model')
CLUSTER_HELP = "preset (2xP100, 4xP100, 8xP100), 'local', or a cluster file"


def add_graph(parser: argparse.ArgumentParser) -> None:
  """The arguments that `read` takes."""
  parser.add_argument('graph', help=GRAPH_HELP)
  parser.add_argument('--cluster', required=True, help=CLUSTER_HELP)
  parser.add_argument('--batch_size', type=positive, default=32, help=(
      'size of dimensions that the graph leaves open (default 32)'))


def read(arguments, prune=True):
  """The graph as it came, as arrays, the cluster and its simulator."""
  load_tensorflow()
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
  violations = placement.violations(graph)
  if violations:
    raise errors.InfeasiblePlacementError(
        f'The placement breaks {len(violations)} rules of {graph.name}, the '
        f'first: {violations[0].message}. Nothing was written.')


def warn(evaluation):
  for violation in evaluation.violations:
    print(f'gdp: warning: {violation.message}', file=sys.stderr)


def positive(text: str) -> int:
  value = int(text)
  if value < 1:
    raise argparse.ArgumentTypeError(f'{text} is not a positive number')
  return value


def not_negative(text: str) -> int:
  value = int(text)
  if value < 0:
    raise argparse.ArgumentTypeError(f'{text} is negative')
  return value
