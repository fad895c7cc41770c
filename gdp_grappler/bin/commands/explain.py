"""`gdp explain`: explain the devices of ops, and price other devices."""

from __future__ import annotations

import argparse

from gdp_grappler import progress
from gdp_grappler.bin.commands import common


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
  """Declares the subcommand."""
  parser = commands.add_parser(
      'explain', help='why ops are where they are, and what moving them '
      'would do')
  common.add_plan(parser)
  parser.add_argument(
      'op', metavar='OP',
      help="an op's name, a pattern such as '*MatMul*', or a "
      "layer or scope such as 'decoder'")
  parser.add_argument('--json', action='store_true', help='print JSON')
  parser.set_defaults(action=run)


def run(arguments: argparse.Namespace) -> int:
  """Prints the explanation."""
  placed = common.planned_step(arguments, arguments.plan)
  from gdp_grappler.api import explaining
  progress.doing(f'moving {arguments.op} to each device')
  explanation = explaining.explain(placed, arguments.op)
  common.say_result(arguments, explanation)
  return 0
