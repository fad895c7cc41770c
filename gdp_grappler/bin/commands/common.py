"""Common parts of subcommands: arguments, graphs, clusters, output."""

from __future__ import annotations

import argparse
import importlib
import math
import os
import pathlib
import sys
from typing import Any, Callable, Iterable, Sequence, TYPE_CHECKING, TypeVar

from gdp_grappler import environment
from gdp_grappler import errors
from gdp_grappler import files
from gdp_grappler import progress
from gdp_grappler import quiet
from gdp_grappler.bin import starting
from gdp_grappler.graph import assumptions
from gdp_grappler.graph.sources import captured_folders
from gdp_grappler.problems import help_texts
from gdp_grappler.reports import tables
from gdp_grappler.sharding import choice

if TYPE_CHECKING:
  # Imported where they are used, so that a command prints a line at once.
  from gdp_grappler.api import placed_step
  from gdp_grappler.cluster import cluster as cluster_lib
  from gdp_grappler.evaluation import evaluator
  from gdp_grappler.problems import request as request_lib

# Arguments that may name files to read, and those that may name folders.
_READ = 'graph', 'plan', 'cluster', 'profile', 'calibration', 'policy'
_FOLDERS = 'graph', 'policy'
# Files and folders of a SavedModel or a network.
_PARTS = frozenset(
    ('saved_model.pb', 'saved_model.pbtxt', 'fingerprint.pb',
     'keras_metadata.pb', 'policy.json', 'variables', 'assets', 'assets.extra'))
_Number = TypeVar('_Number', int, float)


def add_graph(parser: argparse.ArgumentParser,
              graph_help: str = help_texts.GRAPH) -> None:
  """Adds the arguments that name a graph."""
  parser.add_argument('graph', help=graph_help)
  parser.add_argument('--batch_size', type=positive,
                      default=assumptions.DEFAULT_BATCH_SIZE,
                      help=f'{help_texts.BATCH_SIZE} (default %(default)s)')
  parser.add_argument('--signature', default='', help=help_texts.SIGNATURE)
  parser.add_argument('--shape', type=shape, action='append', default=[],
                      help=help_texts.SHAPE)


def add_priced_graph(parser: argparse.ArgumentParser,
                     cluster_help: str = help_texts.CLUSTER,
                     cluster_required: bool = True) -> None:
  """Adds the arguments of a graph that is priced on a cluster."""
  add_graph(parser)
  parser.add_argument('--cluster', required=cluster_required, help=cluster_help)
  parser.add_argument('--trip_count', type=positive,
                      default=assumptions.DEFAULT_TRIP_COUNT,
                      help=f'{help_texts.TRIP_COUNT} (default %(default)s)')
  parser.add_argument('--profile', default='', help=help_texts.PROFILE)
  add_calibration(parser)
  parser.add_argument('--may_round', action='store_true',
                      help=help_texts.MAY_ROUND)
  parser.add_argument('--pins', choices=assumptions.PINS,
                      default=assumptions.PINS_KEPT,
                      help=f'{help_texts.PINS} (default %(default)s)')
  parser.add_argument('--split_tables', default=choice.AUTO,
                      metavar='NAME=COUNT,...', help=help_texts.SPLIT_TABLES)


def add_planned_graph(parser: argparse.ArgumentParser) -> None:
  """Adds the arguments of a graph whose plan is read."""
  add_priced_graph(parser, f"{help_texts.CLUSTER}; by default the plan's own",
                   cluster_required=False)


def add_plan(parser: argparse.ArgumentParser) -> None:
  """Adds the arguments of a graph, and its plan."""
  add_planned_graph(parser)
  parser.add_argument('--plan', required=True, help='a plan file, or a map of '
                      'layers')


def add_cache(parser: argparse.ArgumentParser, what: str) -> None:
  """Adds --refresh and --cache_dir, which concern earlier measurements.

  Args:
    parser: The parser of a subcommand that measures.
    what: What the cache has, such as 'calibrations'.
  """
  parser.add_argument('--refresh', action='store_true',
                      help='measure anew what was measured before')
  parser.add_argument(
      '--cache_dir',
      help=(f'folder of {what} (default ${environment.CACHE_DIR}, or '
            "gdp_grappler in the user's cache folder)"))


def add_calibration(parser: argparse.ArgumentParser) -> None:
  """Adds --calibration and --max_memory, which change the cluster."""
  parser.add_argument('--calibration', default='', help=help_texts.CALIBRATION)
  parser.add_argument('--max_memory', default='', metavar='DEVICE=SIZE,...',
                      help=help_texts.MAX_MEMORY)


def cluster(arguments: argparse.Namespace) -> str | cluster_lib.Cluster:
  """Returns --cluster, changed by --calibration and --max_memory.

  Call this before TensorFlow is loaded, so that an error comes at once.

  Raises:
    GdpError: there is no such cluster, or --calibration or --max_memory is
      given for a device that the cluster lacks.
  """
  name = arguments.cluster or ''
  given = [
      f'--{key}={value}' for key in ('calibration', 'max_memory')
      if (value := getattr(arguments, key))
  ]
  if not name:
    if given:
      raise errors.GdpError(
          f'{given[0]} is for the devices of a cluster. Give --cluster, too.')
    return name
  from gdp_grappler.cluster import resolve
  if name == resolve.LOCAL or name.startswith('grpc:'):
    if not given:
      return name
    load_tensorflow()
  with quiet.stderr_held():  # Some files need a part of TensorFlow.
    found = resolve.resolve(name)
  # The cluster and not its name, because a pipe cannot be read again.
  return changed(arguments, found)


def changed(arguments: argparse.Namespace,
            known: cluster_lib.Cluster) -> cluster_lib.Cluster:
  """Returns a cluster with the figures of --calibration, within --max_memory.

  Raises:
    GdpError: the file or the limits cannot be used, or the cluster has no such
      card or device.
  """
  from gdp_grappler.cluster import max_memory
  known = max_memory.applied(known, max_memory.parse(arguments.max_memory))
  if not arguments.calibration:
    return known
  from gdp_grappler.cluster import calibrated
  from gdp_grappler.cluster import calibration
  return calibrated.applied(known, calibration.load(arguments.calibration))


def planned_steps(arguments: argparse.Namespace,
                  plans: Sequence[str]) -> list[placed_step.PlacedStep]:
  """Returns the step of the arguments, placed by each of several plan files.

  Args:
    arguments: Arguments of `add_planned_graph`.
    plans: The plan files. Without --cluster, the cluster is that of the first.
      If the first is a map of layers, tables that it places stay whole.

  Raises:
    GdpError: the graph, the cluster or a plan cannot be used.
    PlanError: there is no --cluster, and the plans are for several clusters.
  """
  progress.doing(f'reading {", ".join(plans)} and {arguments.graph}')
  from gdp_grappler.api import arguments as arguments_lib
  from gdp_grappler.api import placing
  from gdp_grappler.api import subjects
  from gdp_grappler.cluster import layer_devices
  asked = request(arguments)
  where = cluster(arguments)
  load_what_it_needs(asked, plans)
  # All plans are checked, because reading the graph may take minutes.
  layers, *_ = [layer_devices.layers(plan) for plan in plans]
  subject = subjects.read(
      asked, where or arguments_lib.cluster_of(*plans),
      subjects.Reading(arguments.batch_size, arguments.trip_count, tell=tell,
                       layers=layers))
  # A plan may relax rules for itself, but not for the other plans.
  return [placing.of_plan(subject, plan) for plan in plans]


def planned_step(arguments: argparse.Namespace,
                 plan: str) -> placed_step.PlacedStep:
  """Returns the step of the arguments, placed by one plan file.

  Arguments and errors are those of `planned_steps`.
  """
  return planned_steps(arguments, [plan])[0]


def request(arguments: argparse.Namespace) -> request_lib.Request:
  """Returns the request that the arguments of `add_priced_graph` make."""
  from gdp_grappler.problems import request as request_lib
  return request_lib.Request(arguments.graph, arguments.batch_size,
                             arguments.trip_count, arguments.profile,
                             arguments.may_round, arguments.pins,
                             arguments.signature, tuple(arguments.shape),
                             choice.parse(arguments.split_tables))


def load_what_it_needs(
    asked: request_lib.Request, plans: Iterable[str] = ()) -> None:
  """Imports TensorFlow, unless the graph file has the costs of its ops.

  Args:
    asked: The request. Errors in its graph or its profile come before the
      import, which takes seconds.
    plans: Plan files, which are checked in the same way.

  Raises:
    GdpError: the graph, the profile or a plan cannot be read.
  """
  from gdp_grappler.cluster import plan as plan_lib
  from gdp_grappler.evaluation.costs import profile as profile_lib
  needs_tensorflow = asked.given is None
  for path in plans:
    plan_lib.read_layers(path)
  if needs_tensorflow:
    if asked.profile:
      profile_lib.load(asked.profile)
    load_tensorflow()


def tell(line: str) -> None:
  """Prints an assumption to standard error."""
  progress.say(f'gdp: {line}')


def say(text: object) -> None:
  """Prints a result, and ends the line of progress."""
  progress.idle()
  print(errors.printable(text))


def say_words(text: str) -> None:
  """Prints a sentence, wrapped between words on a terminal."""
  say(tables.wrapped(text) if sys.stdout.isatty() else text)


def say_result(arguments: argparse.Namespace, result: Any,
               text: Callable[[], object] | None = None) -> None:
  """Prints a result: with --json its JSON, else `text()`, by default `str`."""
  if arguments.json:
    say(result.to_json())
  else:
    say(text() if text else result)
    say_where_words_are(arguments)


def say_where_words_are(arguments: argparse.Namespace) -> None:
  """Prints how to see the glossary, unless --quiet."""
  if not arguments.quiet:
    say('\nAll words: gdp glossary.')


def load_tensorflow() -> None:
  """Imports TensorFlow, and hides the notes that it prints at start-up."""
  progress.doing('loading TensorFlow')
  with starting.interrupts_kept(), quiet.stderr_held():
    importlib.import_module('tensorflow').config.list_logical_devices()


def check_output(path: str | os.PathLike[str], arguments: argparse.Namespace,
                 names: Iterable[str] = _READ) -> None:
  """Checks that a result can be written, before the work.

  The result must not replace a file that the command reads.

  Args:
    path: The file of the result.
    arguments: All arguments, which may name files and folders to read.
    names: Names of these arguments.

  Raises:
    GdpError: the file cannot be written, or is read.
  """
  files.check_writable(path)
  for name in names if os.path.isfile(path) else ():
    read = getattr(arguments, name, None)
    if not read or not os.path.exists(read):
      continue
    is_whole = os.path.samefile(read, path)
    if is_whole or name in _FOLDERS and _is_part(path, read):
      part = '' if is_whole else 'a file of '
      raise errors.GdpError(
          f'Cannot write {path}: it is {part}the {name} that is read, and '
          'would be lost. Name another place.')


def _is_part(path: str | os.PathLike[str], folder: str) -> bool:
  """Whether a command may read a file as a part of a folder."""
  file = pathlib.Path(os.path.realpath(path))
  root = pathlib.Path(os.path.realpath(folder))
  if root not in file.parents:
    return False
  inside = file.relative_to(root)
  return (inside.parts[0] in _PARTS or
          captured_folders.is_file_name(str(inside)))


def json_file(text: str) -> str:
  """Returns the name of a JSON file. A device or a pipe may have any name."""
  is_file = os.path.isfile(text) or not os.path.exists(text)
  # A shell may have redirected /dev/stdout to a file.
  if not text.endswith('.json') and is_file and not text.startswith('/dev/'):
    raise argparse.ArgumentTypeError(
        f'it is {text!r}; end the name of the file in .json')
  return text


def warn(evaluation: evaluator.Evaluation) -> None:
  """Prints what makes an evaluation invalid."""
  warn_of([violation.message for violation in evaluation.violations])


def warn_of(messages: Iterable[str]) -> None:
  """Prints warnings about a placement."""
  progress.idle()
  for message in messages:
    progress.say(f'gdp: warning: {message}')


def positive(text: str) -> int:
  """Returns a number of 1 or more from an argument."""
  return _checked(text, int, lambda value: value >= 1,
                  'a whole number of 1 or more, such as 8')


def shape(text: str) -> tuple[str, tuple[int, ...]]:
  """Returns a shape from an argument such as 'input=32,224,224,3'."""
  name, equals, sizes = text.partition('=')
  try:
    dims = tuple(int(size) for size in sizes.split(',')) if sizes else ()
  except ValueError:
    dims = (0,)
  if not name or not equals or not all(size > 0 for size in dims):
    raise argparse.ArgumentTypeError(
        f'it is {text!r}; give the name of an input and the sizes of its '
        'dimensions, such as input=32,224,224,3')
  return name, dims


def seconds(text: str) -> float:
  """Returns a finite number of more than 0 from an argument."""
  return _checked(text, float, lambda value: 0 < value < math.inf,
                  'a number of more than 0, such as 60')


def _checked(text: str, parse: Callable[[str], _Number],
             is_good: Callable[[_Number], bool], what: str) -> _Number:
  try:
    value = parse(text)
  except ValueError:
    pass
  else:
    if is_good(value):
      return value
  raise argparse.ArgumentTypeError(f'it is {text!r}; give {what}')


def not_negative(text: str) -> int:
  """Returns a number of 0 or more from an argument."""
  return _checked(text, int, lambda value: value >= 0,
                  'a whole number of 0 or more, such as 0')
