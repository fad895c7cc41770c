"""`gdp diff`: print the differences of two plans, and their cost."""

from __future__ import annotations

import argparse

from gdp_grappler import progress
from gdp_grappler.bin.commands import common


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
  """Declares the subcommand."""
  parser = commands.add_parser(
      'diff', help='what differs between two plans, and what that costs')
  common.add_planned_graph(parser)
  parser.add_argument('before', metavar='PLAN', help='a plan file')
  parser.add_argument('after', metavar='PLAN', help='another plan')
  parser.add_argument('--json', action='store_true', help='print JSON')
  parser.set_defaults(action=run)


def run(arguments: argparse.Namespace) -> int:
  """Prints the difference."""
  before, after = common.planned_steps(arguments,
                                       [arguments.before, arguments.after])
  from gdp_grappler.api import differing
  progress.doing('comparing the plans')
  common.say_result(arguments, differing.diff(before, after))
  return 0
