"""Signals of a program whose handler raises an exception, as a timeout does."""

import contextlib
import signal


class TooLongError(Exception):
  """The timeout of a program."""


@contextlib.contextmanager
def alarm():
  """Gives a function that sends a signal, whose handler raises the timeout."""

  def handler(*_):
    raise TooLongError

  def ring(*unused_args, **unused_kwargs):
    signal.raise_signal(signal.SIGUSR1)

  before = signal.signal(signal.SIGUSR1, handler)
  try:
    yield ring
  finally:
    signal.signal(signal.SIGUSR1, before)
