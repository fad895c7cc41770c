"""What the console programs call first: what they interrupt is theirs.

Imports take a third of a second, in which Ctrl-C would be a traceback through
whatever is just being imported; nothing has begun then, so nothing is lost.
"""

from __future__ import annotations

import importlib
import os
import signal
import types

_INTERRUPTED = 130


def gdp() -> int | None:
  """The program of this name."""
  return call('gdp', 'gdp_grappler.bin.gdp', 'main')


def call(program: str, module: str, function: str) -> int | None:
  """Imports a module and calls one of its functions.

  Ctrl-C during the import ends the process with a line and exit code 130;
  afterwards it is a `KeyboardInterrupt` again, unless whoever started the
  program has it ignored.

  Args:
    program: Its name, for the line.
    module: To import.
    function: Of the module, without arguments.

  Returns:
    What it returns, an exit code.
  """

  def stop(unused_signal: int, unused_frame: types.FrameType | None) -> None:
    os.write(2, f'{program}: interrupted\n'.encode())
    os._exit(_INTERRUPTED)

  before = signal.getsignal(signal.SIGINT)
  if before is signal.default_int_handler:
    signal.signal(signal.SIGINT, stop)
  called = getattr(importlib.import_module(module), function)
  signal.signal(signal.SIGINT, before)
  code: int | None = called()
  return code
