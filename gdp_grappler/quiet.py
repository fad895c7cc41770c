"""Keeps what libraries print while they load out of a user's sight."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from typing import Iterator


@contextlib.contextmanager
def stderr_held() -> Iterator[None]:
  """Holds standard error back; shows it only if something is raised.

  TensorFlow's start-up notes are written before its log level is known, and
  by native code, so that the file descriptor itself has to be replaced.
  """
  _flush()
  try:
    real = os.dup(2)
  except OSError:
    # Standard error is closed. Nothing is shown anyway.
    yield
    return
  with tempfile.TemporaryFile() as held:
    os.dup2(held.fileno(), 2)
    try:
      yield
    except BaseException:
      held.seek(0)
      os.write(real, held.read())
      raise
    finally:
      _flush()
      os.dup2(real, 2)
      os.close(real)


def _flush() -> None:
  """Flushes standard error, which a program may have closed."""
  if sys.stderr is not None and not sys.stderr.closed:
    sys.stderr.flush()
