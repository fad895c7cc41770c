"""`gdp glossary`: what the words mean."""

from __future__ import annotations

import argparse

from gdp_grappler.reports import glossary


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
  """Declares the subcommand."""
  parser = commands.add_parser('glossary', help='say what the words mean')
  parser.add_argument('word', nargs='?', default='',
                      help='one of them; by default all')
  parser.set_defaults(action=run)


def run(arguments: argparse.Namespace) -> int:
  """Prints definitions."""
  print(glossary.text(arguments.word))
  return 0
