"""Shows the progress and the assumptions of a call from Python."""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Callable, Iterator

from gdp_grappler import errors
from gdp_grappler import progress
from gdp_grappler.reports import progress_line

# Progress is shown on a terminal and in a notebook.
AUTO = 'auto'
Tell = Callable[[str], None]


@contextlib.contextmanager
def listener(tell: Tell | None, verbose: Any) -> Iterator[Tell]:
  """Shows progress on standard error in the context.

  If a listener shows progress already, as in the program gdp, nothing more is
  shown.

  Args:
    tell: Function that gets lines about assumptions; None for standard error.
    verbose: True or 1 shows all, False or 0 shows nothing, as in Keras. `AUTO`
      always shows assumptions, and progress on a terminal or in a notebook.

  Yields:
    The function that gets lines about assumptions.

  Raises:
    GdpError: `tell` is no function, or `verbose` is something else.
  """
  if tell is not None and not callable(tell):
    raise errors.GdpError(f'tell is {errors.shown(tell)}; give a function '
                          'that gets a text, such as print, or None.')
  if verbose not in (AUTO, True, False):
    raise errors.GdpError(
        f"verbose is {errors.shown(verbose)}; give 'auto', True or False.")
  listening = tell or (say if verbose else progress.silent)
  shows = _is_watched() if verbose == AUTO else bool(verbose)
  if progress.is_heard() or not shows:
    yield listening
    return
  with progress_line.shown('gdp'):
    yield listening


def say(line: str) -> None:
  """Prints a line about an assumption on standard error."""
  progress.say(f'gdp: {line}')


def _is_watched() -> bool:
  """Whether standard error is a terminal or belongs to a notebook."""
  if 'ipykernel' in sys.modules:
    return True
  return progress.has_stderr() and getattr(sys.stderr, 'isatty', bool)()
