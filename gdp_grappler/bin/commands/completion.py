"""`gdp completion`: print a shell script that completes commands and flags."""

from __future__ import annotations

import argparse
import importlib

from gdp_grappler import extras


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
  """Declares the subcommand."""
  parser = commands.add_parser(
      'completion', help='print a script by which a shell completes commands',
      formatter_class=argparse.RawDescriptionHelpFormatter, epilog='''
  bash: gdp completion bash > ~/.local/share/bash-completion/completions/gdp
  zsh:  gdp completion zsh > DIR/_gdp, with DIR in $fpath
''')
  parser.add_argument('shell', choices=('bash', 'zsh', 'tcsh'))
  parser.set_defaults(action=run)


def run(arguments: argparse.Namespace) -> int:
  """Prints the script; `arguments.program` is the parser of all commands."""
  extras.require('Completion', 'shtab')
  print(
      importlib.import_module('shtab').complete(arguments.program,
                                                arguments.shell))
  return 0
