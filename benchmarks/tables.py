"""What programs have in common that print a table, or its rows as JSON."""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import shlex
import sys
from typing import Any, Callable, Sequence, TypeVar

from benchmarks import pages
from gdp_grappler import errors
from gdp_grappler import progress
from gdp_grappler.problems import reading
from gdp_grappler.reports import progress_line
from gdp_grappler.reports import tables

Row = TypeVar('Row')
# Adds an argument to a parser.
Option = Callable[[argparse.ArgumentParser], object]
# The title of a table in a page; may depend on the program's arguments.
Title = str | Callable[[argparse.Namespace], str]
# Runs a program with its arguments, and returns its exit code.
Main = Callable[..., int]


@dataclasses.dataclass(frozen=True)
class Table:
  """What a program found.

  Attributes:
    caption: What its numbers are of.
    head: Titles of the columns; the first is of names.
    cells: As many of each row.
    rows: The same as JSON.
    fails: Whether the program ends with 1.
  """

  caption: str
  head: Sequence[str]
  cells: Sequence[Sequence[str]]
  rows: Sequence[dict[str, Any]]
  fails: bool = False


def parser(name: str, description: str | None) -> argparse.ArgumentParser:
  """With the options --json, --page and --quiet.

  Args:
    name: Of the program, below `benchmarks`.
    description: As it is to be shown.
  """
  result = argparse.ArgumentParser(
      prog=name, description=description,
      formatter_class=argparse.RawDescriptionHelpFormatter)
  result.add_argument('--json', action='store_true')
  result.add_argument('--page', type=pathlib.Path)
  result.add_argument('--quiet', action='store_true')
  return result


def parser_of_tasks(name: str, description: str | None,
                    seconds: float | None = None) -> argparse.ArgumentParser:
  """With tasks and --seeds, too, and --seconds of each search if it has some.

  Args:
    name: As of `parser`.
    description: As of `parser`.
    seconds: By default; None for no such option.
  """
  result = parser(name, description)
  result.add_argument('tasks', nargs='+', metavar='GRAPH@CLUSTER')
  if seconds is not None:
    result.add_argument('--seconds', type=float, default=seconds)
  result.add_argument('--seeds', type=int, default=3)
  return result


def parse(options: argparse.ArgumentParser,
          argv: Sequence[str] | None) -> argparse.Namespace:
  """The arguments, and as `name` and `command` what they were given to.

  Args:
    options: From `parser`.
    argv: Arguments after the program's name; `sys.argv` if None.
  """
  given = sys.argv[1:] if argv is None else argv
  result = options.parse_args(given)
  result.name = options.prog
  result.command = shlex.join(
      ['python', '-m', f'benchmarks.{options.prog}', *given])
  return result


def show(arguments: argparse.Namespace, title: str,
         find: Callable[[], Table | None]) -> int:
  """Prints a table, and replaces the one in the page.

  Args:
    arguments: From `parse`.
    title: Of the table in the page.
    find: Makes the table; None if there is nothing to show.

  Returns:
    0, 1 if the table says so, or 2 after a line about an error of ours.
  """
  try:
    page = pages.Page(arguments.page, title) if arguments.page else None
    with progress_line.shown(arguments.name, arguments.quiet):
      progress.doing('starting')
      found = find()
    if found is None:
      return 0
    if arguments.json:
      print(json.dumps(found.rows, indent=2))
    else:
      print(tables.titled(found.caption, [found.head, *found.cells]))
    # Last, so that what was found is seen even if it cannot be written.
    if page:
      page.replace(arguments.command, found.head, found.cells)
    return int(found.fails)
  except errors.GdpError as error:
    print(f'{arguments.name}: error: {error}', file=sys.stderr)
    return 2


def option(*names: str, **how: Any) -> Option:
  """An option of `program`: the arguments of `add_argument`."""
  return lambda options: options.add_argument(*names, **how)


def program(name: str, description: str | None, title: Title,
            find: Callable[[argparse.Namespace],
                           Table | None], *options: Option) -> Main:
  """The function `main` of a program.

  Args:
    name: As of `parser`.
    description: As of `parser`.
    title: Of the table in the page.
    find: Makes the table from the program's arguments.
    *options: From `option`.

  Returns:
    A function that prints the table or the list and returns the exit code
    (`show`). It takes the arguments after the program's name, by default
    `sys.argv`.
  """
  return _main(lambda: parser(name, description), title, find, options)


def program_of_tasks(name: str, description: str | None, title: Title,
                     doing: str, rows: Callable[[str, argparse.Namespace], Row],
                     table: Callable[[list[Row], argparse.Namespace], Table],
                     *options: Option, seconds: float | None = None) -> Main:
  """The function `main` of a program that prints a table of tasks.

  Args:
    name: As of `parser_of_tasks`.
    description: As of `parser_of_tasks`.
    title: Of the table in the page.
    doing: What is done to each task, as '...ing'.
    rows: What is found of a task.
    table: Of what was found of all.
    *options: From `option`.
    seconds: As of `parser_of_tasks`.
  """

  def find(arguments: argparse.Namespace) -> Table:
    # A wrong name at the end would lose what was found before.
    for task in arguments.tasks:
      reading.check_task(task)
    return table(
        progress.of_each(doing, arguments.tasks,
                         lambda task: rows(task, arguments), str), arguments)

  return _main(lambda: parser_of_tasks(name, description, seconds), title, find,
               options)


def _main(make: Callable[[], argparse.ArgumentParser], title: Title,
          find: Callable[[argparse.Namespace],
                         Table | None], options: Sequence[Option]) -> Main:

  def main(argv: Sequence[str] | None = None) -> int:
    made = make()
    for add in options:
      add(made)
    arguments = parse(made, argv)
    return show(arguments,
                title if isinstance(title, str) else title(arguments),
                lambda: find(arguments))

  return main


def milliseconds(seconds: float | None) -> str:
  """As a cell of a table; '-' for None."""
  return '-' if seconds is None else f'{seconds * 1e3:.1f} ms'
