"""Where the programs print tables and progress bars."""

from __future__ import annotations

import sys

import rich.console

from gdp_grappler.bin import starting


class Console(rich.console.Console):
  """A console whose reader may end early.

  If the reader of the stream, such as `head`, closes the pipe, rich would end
  the program. Its files would then be missing.
  """

  def on_broken_pipe(self) -> None:
    """Goes on without output."""
    self.quiet = True
    starting.drop(sys.stderr if self.stderr else sys.stdout)
