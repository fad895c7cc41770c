"""`gdp doctor`: check the installation."""

from __future__ import annotations

import argparse
from typing import Any

from gdp_grappler.bin.commands import common


def add(commands: Any) -> None:
  """Declares the subcommand."""
  parser = commands.add_parser('doctor', help='check the installation')
  parser.add_argument('--policy', help='a policy folder to check as well')
  parser.set_defaults(action=run)


def run(arguments: argparse.Namespace) -> int:
  """Prints what is found; 1 if something is wrong."""
  common.load_tensorflow()
  from gdp_grappler.plugin import doctor
  findings = doctor.examine(arguments.policy)
  for finding in findings:
    print(f'{finding.state:4}  {finding.what}: {finding.detail}')
    if finding.remedy:
      print(f'      -> {finding.remedy}')
  wrong = sum(finding.state == doctor.BAD for finding in findings)
  print('All is well.' if not wrong else f'{wrong} of {len(findings)} checks '
        'failed.')
  return 1 if wrong else 0
