"""What a call from Python says meanwhile: progress, and what was assumed."""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Callable, Iterator

from gdp_grappler import errors
from gdp_grappler import progress
from gdp_grappler.reports import progress_line

# Progress is shown where somebody watches.
AUTO = 'auto'
Tell = Callable[[str], None]


@contextlib.contextmanager
def told(tell: Tell | None, verbose: Any) -> Iterator[Tell]:
  """In the context, progress is shown on standard error.

  Not if somebody shows it already, as the command line does.

  Args:
    tell: Hears what was assumed; None for standard error.
    verbose: As Keras has it: True or 1, False or 0, or `AUTO`: progress on a
      terminal and in a notebook, and what was assumed everywhere.

  Yields:
    Who is to hear what was assumed.

  Raises:
    GdpError: `verbose` is something else.
  """
  if verbose not in (AUTO, True, False):
    raise errors.GdpError(
        f"verbose is {verbose!r}; give 'auto', True or False.")
  heard = tell or (say if verbose else _silent)
  shows = _is_watched() if verbose == AUTO else bool(verbose)
  if progress.is_heard() or not shows:
    yield heard
    return
  with progress_line.shown('gdp'):
    yield heard


def say(line: str) -> None:
  """Prints what was assumed on standard error."""
  if sys.stderr is None or sys.stderr.closed:
    return
  progress.make_room()
  print(f'gdp: {errors.one_line(line)}', file=sys.stderr)


def _silent(line: str) -> None:
  """Nobody wants to hear it."""
  del line


def _is_watched() -> bool:
  """Whether somebody looks at standard error: on a terminal, or a notebook."""
  if 'ipykernel' in sys.modules:
    return True
  return sys.stderr is not None and not sys.stderr.closed and (
      sys.stderr.isatty())
