"""`gdp verify`: check that small programs are placed, and still train."""

from __future__ import annotations

import argparse

from gdp_grappler import progress
from gdp_grappler.bin.commands import common


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
  """Declares the subcommand."""
  parser = commands.add_parser(
      'verify', help='place three small programs and compare their losses, on '
      'the CPU and, where there is one, on a GPU; less than a minute each')
  parser.add_argument(
      '--on', choices=('CPU', 'GPU'), action='append',
      help='only on devices of this type; by default on all types here')
  parser.set_defaults(action=run)


def run(arguments: argparse.Namespace) -> int:
  """Prints the results; returns 1 if a program does not work."""
  progress.doing('placing three small programs over two devices')
  from gdp_grappler.api import verifying
  verification = verifying.verify(arguments.on)
  common.say(verification)
  return 0 if verification.works else 1
