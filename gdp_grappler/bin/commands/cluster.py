"""`gdp cluster`: print a cluster, and measure its links."""

from __future__ import annotations

import argparse
import contextlib
import pathlib
from typing import TYPE_CHECKING

from gdp_grappler import errors
from gdp_grappler import progress
from gdp_grappler.bin.commands import common
from gdp_grappler.cluster import preset_grammar
from gdp_grappler.problems import help_texts

if TYPE_CHECKING:
  from gdp_grappler.cluster import cluster as cluster_lib
  from gdp_grappler.evaluation.link_timing import ping_pong

_EPILOG = f"""\
presets: {preset_grammar.GRAMMAR}.
A file is JSON as --json prints it, or TensorFlow's NamedDevice list with links,
as JSON or protobuf text (--output=FILE.pbtxt writes one)."""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
  """Declares the subcommand."""
  parser = commands.add_parser(
      'cluster', help='print a cluster; measure its links', epilog=_EPILOG,
      formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument('cluster', nargs='?', help=help_texts.CLUSTER)
  parser.add_argument(
      '--measure', action='store_true',
      help=('time transfers of 1 B to 64 MiB between all devices, and a step '
            'that does nothing; the times replace assumed figures'))
  parser.add_argument(
      '--local_workers', type=common.positive, metavar='N',
      help='instead of CLUSTER: N TensorFlow servers on this '
      'machine, each on cores of its own')
  parser.add_argument(
      '--target', metavar='grpc://HOST:PORT',
      help=('server at which to measure CLUSTER; not needed if CLUSTER is an '
            'address. Without CLUSTER: the cluster of this server'))
  common.add_calibration(parser)
  parser.add_argument('--json', action='store_true',
                      help='print JSON instead of tables')
  parser.add_argument(
      '--output', metavar='FILE',
      help=('write a cluster file: .json, or .pbtxt, .txt or .textproto for '
            'protobuf text'))
  parser.set_defaults(action=run)


def run(arguments: argparse.Namespace) -> int:
  """Prints the cluster."""
  count = arguments.local_workers
  name = (arguments.target
          if arguments.cluster is None else arguments.cluster) or ''
  progress.doing(f'looking at {name or "this machine"}')
  _check(arguments)
  if count or name == 'local' or name.startswith('grpc:') or arguments.measure:
    common.load_tensorflow()
  from gdp_grappler.cluster import cluster_file
  from gdp_grappler.cluster import resolve
  from gdp_grappler.evaluation.measuring import local_workers
  from gdp_grappler.reports import cluster_table
  cluster, timings = (local_workers.cluster(count)
                      if count else resolve.resolve(name)), None
  if arguments.measure:
    with contextlib.ExitStack() as stack:
      target = arguments.target or (name if name.startswith('grpc:') else '')
      if count:
        target = stack.enter_context(local_workers.LocalWorkers(count)).target
      cluster, timings = _measured(cluster, target)
  cluster = common.changed(arguments, cluster)
  if arguments.output:
    cluster_file.write(arguments.output, cluster)
  common.say_result(arguments, cluster,
                    lambda: cluster_table.text(cluster, timings).rstrip())
  return 0


def _check(arguments: argparse.Namespace) -> None:
  """Raises errors about arguments before the work begins."""
  named = arguments.cluster is not None or arguments.target is not None
  if named == (arguments.local_workers is not None):
    raise errors.ClusterError('Give either a cluster or --local_workers=N; '
                              '--target=grpc://HOST:PORT is a cluster too.')
  if arguments.target is not None:
    from gdp_grappler.cluster import remote_devices
    remote_devices.check_target(arguments.target)
    if arguments.cluster is not None and not arguments.measure:
      raise errors.ClusterError(
          '--target says where to measure; add --measure.')
  if arguments.output:
    from gdp_grappler.cluster import cluster_file
    path = pathlib.Path(arguments.output)
    if path.suffix not in cluster_file.SUFFIXES:
      raise errors.ClusterError(
          f'Cannot tell how to write {path}: end its name in .json, or in '
          '.pbtxt, .txt or .textproto for protobuf text.')
    # The cluster itself may be changed in place.
    common.check_output(path, arguments, ['calibration'])


def _measured(cluster: cluster_lib.Cluster,
              target: str) -> tuple[cluster_lib.Cluster, ping_pong.Timings]:
  from gdp_grappler.evaluation.link_timing import ping_pong
  timings = ping_pong.measure(
      cluster, target, progress=lambda what: progress.doing(f'timing {what}'))
  return ping_pong.apply(cluster, timings), timings
