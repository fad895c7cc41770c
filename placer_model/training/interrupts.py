"""Ctrl-C in a training run: what was learned stays in a checkpoint."""

from __future__ import annotations

import contextlib
import pathlib
import signal
from typing import Iterator

from placer_model import run_folder
from placer_model.training import checkpoints


class Interrupted(Exception):
  """The user pressed Ctrl-C, and there is a checkpoint."""


@contextlib.contextmanager
def naming_checkpoint(model_dir: pathlib.Path) -> Iterator[None]:
  """Reports the last checkpoint if Ctrl-C ends a run at once.

  Raises:
    Interrupted: the user pressed Ctrl-C, and there is a checkpoint.
  """
  try:
    yield
  except KeyboardInterrupt:
    kept = checkpoints.newest_first(model_dir / 'checkpoints')
    if not kept:
      raise
    raise Interrupted(f'interrupted; checkpoint {kept[0]} is there. Run '
                      f'{run_folder.SAME_COMMAND} to go on from it.') from None


class Interrupt(contextlib.AbstractContextManager['Interrupt']):
  """Remembers the first Ctrl-C; a second one ends the process at once.

  Attributes:
    pending: Whether the user has pressed Ctrl-C.
  """

  def __enter__(self) -> Interrupt:
    self.pending = False
    self._before = signal.signal(signal.SIGINT, self._remember)
    return self

  def __exit__(self, *unused: object) -> None:
    signal.signal(signal.SIGINT, self._before)

  def _remember(self, *unused: object) -> None:
    self.pending = True
    signal.signal(signal.SIGINT, signal.default_int_handler)
