"""What several subcommands share: their arguments, reading, complaining."""

from __future__ import annotations

import argparse
import importlib
import pathlib
import sys

from gdp_grappler import errors
from gdp_grappler import quiet
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator
from gdp_grappler.graph import assumptions
from gdp_grappler.graph import op_graph
from gdp_grappler.placers import step as step_lib
from gdp_grappler.problems import help_texts
from gdp_grappler.problems import reading
from gdp_grappler.problems import request as request_lib


def add_graph(parser: argparse.ArgumentParser,
              graph_help: str = help_texts.GRAPH) -> None:
  """The arguments that tell which graph is meant."""
  parser.add_argument('graph', help=graph_help)
  parser.add_argument('--batch_size', type=positive,
                      default=assumptions.DEFAULT_BATCH_SIZE,
                      help=f'{help_texts.BATCH_SIZE} (default %(default)s)')


def add_priced_graph(parser: argparse.ArgumentParser,
                     cluster_help: str = help_texts.CLUSTER,
                     cluster_required: bool = True) -> None:
  """The arguments that `read` takes."""
  add_graph(parser)
  parser.add_argument('--cluster', required=cluster_required, help=cluster_help)
  parser.add_argument('--trip_count', type=positive,
                      default=assumptions.DEFAULT_TRIP_COUNT,
                      help=f'{help_texts.TRIP_COUNT} (default %(default)s)')
  parser.add_argument('--profile', default='', help=help_texts.PROFILE)


def request(arguments: argparse.Namespace) -> request_lib.Request:
  """What `add_priced_graph` parsed."""
  return request_lib.Request(arguments.graph, arguments.batch_size,
                             arguments.trip_count, arguments.profile)


def read(asked: request_lib.Request, where: reading.Where) -> step_lib.Step:
  """What `reading.read` does, without TensorFlow's notes of its start-up."""
  if asked.given is None:
    load_tensorflow()
  return reading.read(asked, where, tell)


def tell(line: str) -> None:
  """Prints what was assumed."""
  print(f'gdp: {line}', file=sys.stderr)


def load_tensorflow() -> None:
  """Imports it for later, without the notes of its start-up."""
  with quiet.stderr_held():
    importlib.import_module('tensorflow').config.list_logical_devices()


def check_writable(path: str) -> None:
  """Fails before the work, not after it."""
  target = pathlib.Path(path)
  if target.suffix not in ('.json', '.pb', '.pbtxt'):
    raise errors.GdpError(f'Cannot tell what to write to {path}: end its name '
                          'in .json (plan), .pb or .pbtxt (GraphDef).')
  check_folder(path)


def check_folder(path: str) -> None:
  """Fails before the work if a file cannot be written where it is to be."""
  target = pathlib.Path(path).absolute()
  if not target.parent.is_dir():
    raise errors.GdpError(f'Cannot write {path}: its folder does not exist.')
  if target.is_dir():
    raise errors.GdpError(f'Cannot write {path}: it is a folder.')


def refuse_illegal(placement: placement_lib.Placement, graph: op_graph.OpGraph,
                   origin: str, remedy: str) -> None:
  """Raises an error unless the placement keeps the graph's rules."""
  violations = placement.violations(graph)
  if violations:
    count = len(violations)
    raise errors.InfeasiblePlacementError(
        f'{origin} breaks {count} rule{"s" * (count > 1)} of graph '
        f'"{graph.name}", such as: {violations[0].message}. {remedy}')


def origin_of_plan(path: str) -> str:
  """What to call the devices that a plan file gives."""
  return f'"devices" of plan {path}'


def warn(evaluation: evaluator.Evaluation) -> None:
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
