"""Hides text that libraries print while they load."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from typing import Iterator


@contextlib.contextmanager
def stderr_held() -> Iterator[None]:
  """Hides standard error in the context, and shows it only after an error.

  Ctrl-C does not count as an error.

  At its start TensorFlow prints notes before it reads its log level. Native
  code prints them, so the file descriptor itself has to be replaced.
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
    except KeyboardInterrupt:
      raise
    except BaseException:
      held.seek(0)
      # Standard error may be a pipe without a reader.
      with contextlib.suppress(OSError):
        os.write(real, held.read())
      raise
    finally:
      _flush()
      os.dup2(real, 2)
      os.close(real)


def _flush() -> None:
  """Flushes standard error, which a program may have closed or replaced."""
  if sys.stderr is not None and not getattr(sys.stderr, 'closed', False):
    # The program goes on if its standard error fails.
    with contextlib.suppress(Exception):
      sys.stderr.flush()
