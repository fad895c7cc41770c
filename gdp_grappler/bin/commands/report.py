"""`gdp report`: plans of a step as a page for the browser."""

from __future__ import annotations

import argparse

from gdp_grappler import extras
from gdp_grappler import files
from gdp_grappler import progress
from gdp_grappler.bin.commands import common


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
  """Declares the subcommand."""
  parser = commands.add_parser('report',
                               help='show plans in a page for the browser')
  common.add_planned_graph(parser)
  parser.add_argument(
      '--plan', required=True, action='append', help='a plan file. Of several '
      'plans (--plan=A --plan=B) the last is compared with the first, a single '
      'plan with the best single device')
  parser.add_argument('--output', required=True, metavar='FILE.html',
                      help='the page: one file that loads no other file')
  parser.set_defaults(action=run)


def run(arguments: argparse.Namespace) -> int:
  """Writes the page and prints its path."""
  from gdp_grappler.api import reporting
  reporting.check_name(arguments.output)
  files.check_writable(arguments.output)
  extras.require('A report', 'plotly')
  plans = common.planned_steps(arguments, arguments.plan)
  progress.doing(f'drawing {arguments.output}')
  reporting.report(plans, arguments.output)
  common.say(f'Wrote {arguments.output}; open it in a browser.')
  return 0
