"""Prints lines for the user, by the logger 'gdp_grappler'."""

from __future__ import annotations

import functools
import logging
import sys
from typing import Any

from gdp_grappler import errors

_LOGGER_NAME = 'gdp_grappler'
# Topics about which a line was printed.
_topics: set[str] = set()


def say(message: str) -> None:
  """Prints one line; does nothing for ''."""
  if message:
    _logger().info('%s', message)


@functools.cache
def say_once(message: str) -> None:
  """Prints one line, the same text only once per process."""
  say(message)


def say_of(topic: str, message: str) -> None:
  """Prints one line, unless the process printed a line about the topic.

  Args:
    topic: The topic; '' if each message is printed.
    message: The line; '' for none.
  """
  if message and (not topic or topic not in _topics):
    _topics.add(topic)
    say(message)


@functools.cache
def warn_once(message: str) -> None:
  """Prints one warning, the same text only once per process."""
  _logger().warning('%s', message)


class _StderrHandler(logging.StreamHandler[Any]):
  """Writes to the present `sys.stderr`, which a program may have replaced."""

  def __init__(self) -> None:
    logging.Handler.__init__(self)
    self.setFormatter(_Formatter())

  @property
  def stream(self) -> Any:
    return sys.stderr

  def emit(self, record: logging.LogRecord) -> None:
    stream = sys.stderr
    # pythonw and daemons have no standard error. A closed one would raise an
    # exception in `handleError`.
    if stream is not None and not getattr(stream, 'closed', False):
      super().emit(record)

  def handleError(self, record: logging.LogRecord) -> None:
    """Drops a line that cannot be written.

    The stock method reports the failure on standard error, which has just
    failed. A second exception would reach the program.
    """


class _Formatter(logging.Formatter):

  def format(self, record: logging.LogRecord) -> str:
    text = errors.one_line(record.getMessage())
    prefix = 'Warning: ' if record.levelno >= logging.WARNING else ''
    return f'[gdp] {prefix}{text}'


@functools.cache
def _logger() -> logging.Logger:
  """Returns the logger, with a handler and a level unless the user set them."""
  logger = logging.getLogger(_LOGGER_NAME)
  if not logger.handlers:
    logger.addHandler(_StderrHandler())
    logger.propagate = False
  if logger.level == logging.NOTSET:
    logger.setLevel(logging.INFO)
  return logger
