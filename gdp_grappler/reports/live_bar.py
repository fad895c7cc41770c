"""A bar of progress for programs that run in a terminal."""

from __future__ import annotations

import rich.console
import rich.progress


def live_bar(console: rich.console.Console) -> rich.progress.Progress | None:
  """Returns a bar with a count and the field `eta`; None without terminal."""
  if not console.is_terminal:
    return None
  return rich.progress.Progress(
      rich.progress.TextColumn('{task.description}'),
      rich.progress.BarColumn(bar_width=20),
      rich.progress.TextColumn('{task.completed}/{task.total}'),
      rich.progress.TextColumn('ETA {task.fields[eta]}'), console=console,
      transient=True)
