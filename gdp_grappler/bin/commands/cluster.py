"""`gdp cluster`: print a cluster."""

from __future__ import annotations

from gdp_grappler.bin.commands import common


def add(commands) -> None:
  """Declares the subcommand."""
  parser = commands.add_parser('cluster', help='print a cluster as JSON')
  parser.add_argument('cluster', help=common.CLUSTER_HELP)
  parser.set_defaults(action=run)


def run(arguments) -> int:
  """Prints it."""
  if arguments.cluster == 'local':
    common.load_tensorflow()
  from gdp_grappler.cluster import resolve  # pylint: disable=g-import-not-at-top
  print(resolve.resolve(arguments.cluster).to_json())
  return 0
