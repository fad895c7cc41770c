"""`gdp doctor`: check the installation."""

from __future__ import annotations

import argparse
from typing import Any

from gdp_grappler import progress
from gdp_grappler.bin.commands import common


def add(commands: Any) -> None:
  """Declares the subcommand."""
  parser = commands.add_parser('doctor', help='check the installation')
  parser.add_argument(
      '--policy', help='check the network in this folder, which gdp_train '
      'or gdp_pretrain wrote, in place of the networks that ship')
  parser.set_defaults(action=run)


def run(arguments: argparse.Namespace) -> int:
  """Prints the findings; returns 1 if something is wrong."""
  common.load_tensorflow()
  from gdp_grappler.plugin import doctor
  progress.doing('checking the installation')
  states = []
  for finding in doctor.examine(arguments.policy):
    states.append(finding.state)
    progress.make_room()
    print(f'{finding.state:4}  {finding.what}: {finding.detail}', flush=True)
    if finding.remedy:
      print(f'      -> {finding.remedy}', flush=True)
  wrong = states.count(doctor.BAD)
  common.say('All is well.'
             if not wrong else f'{wrong} of {len(states)} checks failed.')
  return 1 if wrong else 0
