"""Common parts of the programs that print a table, or its rows as JSON."""

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
# The title of a table in a page, which may depend on the program's arguments.
Title = str | Callable[[argparse.Namespace], str]
# Runs a program with its arguments, and returns its exit code.
Main = Callable[..., int]


@dataclasses.dataclass(frozen=True)
class Table:
  """The result of a program.

  Attributes:
    caption: The quantity and the unit of the numbers.
    head: [C], titles of the columns. The first column has the names of rows.
    cells: [R][C], texts of the cells, row by row.
    rows: [R], the same rows for JSON.
    fails: Whether the exit code of the program is 1.
  """

  caption: str
  head: Sequence[str]
  cells: Sequence[Sequence[str]]
  rows: Sequence[dict[str, Any]]
  fails: bool = False


def parser(name: str, description: str | None) -> argparse.ArgumentParser:
  """Returns a parser with the options --json, --page and --quiet.

  Args:
    name: Name of the program's module in `benchmarks`.
    description: Text of --help.
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
  """Returns a `parser` that also takes tasks, --seeds and maybe --seconds.

  Args:
    name: Name of the program's module in `benchmarks`.
    description: Text of --help.
    seconds: Default of --seconds, the time of each search. None means that the
      program has no such option.
  """
  result = parser(name, description)
  result.add_argument('tasks', nargs='+', metavar='GRAPH@CLUSTER')
  if seconds is not None:
    result.add_argument('--seconds', type=float, default=seconds)
  result.add_argument('--seeds', type=int, default=3)
  return result


def parse(options: argparse.ArgumentParser,
          argv: Sequence[str] | None) -> argparse.Namespace:
  """Returns the arguments, with the program's name and the whole command.

  The fields `name` and `command` have these two.

  Args:
    options: Parser that `parser` made.
    argv: Arguments after the program's name. None means those of `sys.argv`.
  """
  given = sys.argv[1:] if argv is None else argv
  result = options.parse_args(given)
  result.name = options.prog
  result.command = shlex.join(
      ['python', '-m', f'benchmarks.{options.prog}', *given])
  return result


def show(arguments: argparse.Namespace, title: str,
         find: Callable[[], Table | None]) -> int:
  """Prints a table, and replaces the table of that title in the page.

  Args:
    arguments: Result of `parse`.
    title: Title of the table in the page.
    find: Makes the table. It returns None if there is nothing to show.

  Returns:
    The exit code: 0, 1 if `Table.fails`, or 2 after a line about a GdpError.
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
    # Last, so that the user sees the table even if the page cannot be written.
    if page:
      page.replace(arguments.command, found.head, found.cells)
    return int(found.fails)
  except errors.GdpError as error:
    print(f'{arguments.name}: error: {error}', file=sys.stderr)
    return 2


def option(*names: str, **how: Any) -> Option:
  """Returns an option of `program`; arguments are those of `add_argument`."""
  return lambda options: options.add_argument(*names, **how)


def program(name: str, description: str | None, title: Title,
            find: Callable[[argparse.Namespace],
                           Table | None], *options: Option) -> Main:
  """Returns the function `main` of a program.

  Args:
    name: Name of the program's module in `benchmarks`.
    description: Text of --help.
    title: Title of the table in the page.
    find: Makes the table from the program's arguments.
    *options: Further options, made by `option`.

  Returns:
    A function that takes the arguments after the program's name, by default
    those of `sys.argv`. The function prints the table or the list, and returns
    the exit code (`show`).
  """
  return _main(lambda: parser(name, description), title, find, options)


def program_of_tasks(name: str, description: str | None, title: Title,
                     doing: str, rows: Callable[[str, argparse.Namespace], Row],
                     table: Callable[[list[Row], argparse.Namespace], Table],
                     *options: Option, seconds: float | None = None) -> Main:
  """Returns the function `main` of a program that prints a table of tasks.

  Args:
    name: Name of the program's module in `benchmarks`.
    description: Text of --help.
    title: Title of the table in the page.
    doing: The verb for the progress line, such as 'placing'.
    rows: Returns the result of a task, from its name and the arguments.
    table: Makes the table from the results of all tasks.
    *options: Further options, made by `option`.
    seconds: Default of --seconds; see `parser_of_tasks`.
  """

  def find(arguments: argparse.Namespace) -> Table:
    # A wrong last name would otherwise lose the results of all others.
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
  """The text of a cell, such as '1.2 ms'; '-' for None."""
  return '-' if seconds is None else f'{seconds * 1e3:.1f} ms'
