"""Common parts of the programs that print a table, or its rows as JSON."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import pathlib
import shlex
import sys
from typing import Any, Callable, Iterable, Sequence, TypeVar

import numpy as np

from benchmarks import pages
from gdp_grappler import errors
from gdp_grappler import progress
from gdp_grappler.problems import reading
from gdp_grappler.processes import calls
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
    draw: Draws a picture beside the page; None for no picture.
  """

  caption: str
  head: Sequence[str]
  cells: Sequence[Sequence[str]]
  rows: Sequence[dict[str, Any]]
  fails: bool = False
  draw: Callable[[pathlib.Path], None] | None = None


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
    The exit code: 0, 1 if `Table.fails`, or 2 after a line about a GdpError or
    about a child process that failed.
  """
  try:
    page = pages.Page(arguments.page, title) if arguments.page else None
    with progress_line.shown(arguments.name, arguments.quiet):
      progress.doing('starting')
      found = find()
    if found is None:
      return 0
    if arguments.json:
      print(json.dumps(finite(found.rows), indent=2))
    else:
      print(tables.titled(found.caption, [found.head, *found.cells]))
    # Last, so that the user sees the table even if the page cannot be written.
    if page:
      page.replace(arguments.command, found.head, found.cells)
      if found.draw:
        found.draw(arguments.page.with_suffix('.png'))
    return int(found.fails)
  except (errors.GdpError, calls.CallError) as error:
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

  def main(argv: Sequence[str] | None = None) -> int:
    made = parser(name, description)
    for add in options:
      add(made)
    arguments = parse(made, argv)
    return show(arguments,
                title if isinstance(title, str) else title(arguments),
                lambda: find(arguments))

  return main


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
    seconds: Default of --seconds, the time of each search. None means that the
      program has no such option.
  """

  def find(arguments: argparse.Namespace) -> Table:
    # A wrong last name would otherwise lose the results of all others.
    for task in arguments.tasks:
      reading.check_task(task)
    return table(
        progress.of_each(doing, arguments.tasks,
                         lambda task: rows(task, arguments), str), arguments)

  common = [option('tasks', nargs='+', metavar='GRAPH@CLUSTER')]
  if seconds is not None:
    common.append(option('--seconds', type=float, default=seconds))
  return program(name, description, title, find, *common,
                 option('--seeds', type=int, default=3), *options)


def names(text: str) -> tuple[str, ...]:
  """Returns the words of an option that are separated by commas."""
  return tuple(text.split(','))


def milliseconds(seconds: float | None) -> str:
  """Returns the text of a step, such as '1.2 ms'; '-' for None.

  Args:
    seconds: Seconds of the step. Infinite means that it exceeds a memory.
  """
  if seconds is None:
    return '-'
  return f'{seconds * 1e3:.1f} ms' if seconds < math.inf else 'out of memory'


def ratio(value: float) -> str:
  """Returns the text of a ratio of steps; '-' if neither fits into memory."""
  return '-' if math.isnan(value) else f'{value:.3f}'


def mean(values: Iterable[float]) -> float:
  """Returns the geometric mean of steps or ratios, which may be infinite or 0.

  The mean of `statistics` fails for a ratio of 0, which is the ratio of a step
  to one that exceeds a memory.
  """
  with np.errstate(divide='ignore', invalid='ignore'):
    return float(np.exp(np.log(list(values)).mean()))


def step_cells(found: Sequence[Sequence[dict[str, Any]]], steps: Sequence[str],
               *ratios: tuple[str, str]) -> list[list[str]]:
  """Returns the cells of tasks: their steps, and ratios of these steps.

  A row has the task, the mean of each step and of each ratio over seeds, and
  the least and the most of the last ratio. The last row is about all tasks.

  Args:
    found: For each task, a row for each seed. A row has "task" and the steps.
    steps: Keys of the steps, in seconds.
    *ratios: Keys of the steps of each ratio.
  """
  cells, means = [], []
  for rows in found:
    of_seeds = [[row[a] / row[b] for row in rows] for a, b in ratios]
    means.append([mean(values) for values in of_seeds])
    cells.append([
        rows[0]['task'],
        *(milliseconds(mean(row[key] for row in rows)) for key in steps),
        *map(ratio, (*means[-1], np.min(of_seeds[-1]), np.max(of_seeds[-1])))
    ])
  of_tasks = np.transpose(means)
  cells.append([
      'geometric mean', *[''] * len(steps), *map(ratio, map(mean, of_tasks)),
      ratio(of_tasks[-1].min()),
      ratio(of_tasks[-1].max())
  ])
  return cells


def finite(value: Any) -> Any:
  """Replaces infinities and NaN by None, because JSON has no such numbers."""
  if isinstance(value, dict):
    return {key: finite(item) for key, item in value.items()}
  if isinstance(value, (list, tuple)):
    return [finite(item) for item in value]
  if isinstance(value, float) and not math.isfinite(value):
    return None
  return value
