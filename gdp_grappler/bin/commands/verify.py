"""`gdp verify`: whether small programs are really placed, and still train."""

from __future__ import annotations

import argparse

from gdp_grappler.api import verifying


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
  """Declares the subcommand."""
  parser = commands.add_parser(
      'verify', help='place three small programs and compare their losses; '
      'less than a minute')
  parser.set_defaults(action=run)


def run(arguments: argparse.Namespace) -> int:
  """Prints what was seen; 1 if something does not work."""
  del arguments
  print('Placing three small programs over two devices of the CPU ...',
        flush=True)
  verification = verifying.verify()
  print(verification)
  return 0 if verification.works else 1
