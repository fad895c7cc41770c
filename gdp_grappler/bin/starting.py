"""What the console programs call first: whoever ends them loses nothing.

Imports take a third of a second, in which Ctrl-C would be a traceback through
whatever is just being imported; nothing has begun then, so nothing is lost.
Batch systems end programs by SIGTERM, which would leave temporary files behind.
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
  program has it ignored. So is SIGTERM; see `end_as_interrupted`.

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

  before = {
      number: signal.getsignal(number)
      for number in (signal.SIGINT, signal.SIGTERM)
  }
  for number, handler in before.items():
    if handler in (signal.default_int_handler, signal.SIG_DFL):
      signal.signal(number, stop)
  called = getattr(importlib.import_module(module), function)
  for number, handler in before.items():
    signal.signal(number, handler)
  end_as_interrupted()
  code: int | None = called()
  return code


def end_as_interrupted() -> None:
  """SIGTERM does from now on what Ctrl-C does, unless it is ignored."""
  if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
    signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(unused_signal: int, frame: types.FrameType | None) -> None:
  handler = signal.getsignal(signal.SIGINT)
  # Programs in the background have Ctrl-C ignored, but are to end now.
  called = handler if callable(handler) else signal.default_int_handler
  called(signal.SIGINT, frame)
