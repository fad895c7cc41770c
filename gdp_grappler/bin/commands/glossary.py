"""`gdp glossary`: what the words mean."""

from __future__ import annotations

import argparse

from gdp_grappler.reports import glossary


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
  """Declares the subcommand."""
  parser = commands.add_parser('glossary', help='say what the words mean')
  parser.add_argument('word', nargs='?', default='',
                      help='a word; by default all words')
  parser.set_defaults(action=run)


def run(arguments: argparse.Namespace) -> int:
  """Prints definitions."""
  print(glossary.text(arguments.word))
  return 0
