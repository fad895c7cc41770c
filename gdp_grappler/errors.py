"""Errors that users see. Each message says what, why, and what to do."""

from __future__ import annotations

_LONGEST = 2000


def one_line(message: object, longest: int = _LONGEST) -> str:
  """What to print of an error or a notice.

  Names that stand in it may come from anybody's file: they may have new lines,
  commands for the terminal, or megabytes.

  Args:
    message: Or an exception.
    longest: Characters of the line, at the most; then its middle is left out.
  """
  text, gap = ' '.join(str(message).split()), ' ... '
  if len(text) > longest:
    half = (longest - len(gap)) // 2
    text = f'{text[:half]}{gap}{text[-half:]}'
  return printable(text)


def first_line(error: BaseException) -> str:
  """The first line of an error, without full stop; its type if it is empty."""
  text = str(getattr(error, 'message', None) or error).strip()
  if not text:
    return type(error).__name__
  return printable(text.splitlines()[0].rstrip('.'))


def described(error: BaseException, longest: int = _LONGEST) -> str:
  """One line for any error; it begins with the type unless that is ours."""
  known = isinstance(error, GdpError)
  return one_line(error if known else f'{type(error).__name__}: {error}',
                  longest)


def printable(text: object) -> str:
  """What to print of a result: lines without commands for the terminal."""
  text = str(text)
  if text.isprintable():
    return text
  return ''.join(c if c.isprintable() or c == '\n' else '?' for c in text)


class GdpError(Exception):
  """Base of every error this project raises on purpose."""


class InvalidGraphError(GdpError):
  """A graph is missing, unreadable or not a dataflow graph."""


class InfeasiblePlacementError(GdpError):
  """No device, or not the asked one, may hold an op."""


class ClusterError(GdpError):
  """A cluster or a device name is unknown, or a cluster file is wrong."""


class PlanError(GdpError):
  """A plan file is unreadable or was made for another graph or cluster."""


class PolicyMismatchError(GdpError):
  """A policy is missing, unreadable or made for other features."""


class PluginError(GdpError):
  """The native libraries are missing or do not fit this TensorFlow."""


class MeasurementError(GdpError):
  """A graph could not be run in order to time it."""
