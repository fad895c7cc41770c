"""Errors that users see, and their text in one line.

Each message says what failed, why, and what to do.
"""

from __future__ import annotations

import reprlib
from typing import Any

_LONGEST = 2000  # Characters of a message. It stays readable in a log.
# Characters of a value in a message, after which the remedy is still in view.
_LONGEST_VALUE = 100


def one_line(message: object, longest: int = _LONGEST) -> str:
  """Returns an error or a notice as one line that is safe to print.

  A message may contain names from other people's files. Such a name may have
  line breaks and control characters for the terminal, or be megabytes long.

  Args:
    message: A text or an exception.
    longest: Largest number of characters. The middle of a longer line is left
      out.
  """
  text, gap = ' '.join(str(message).split()), ' ... '
  if len(text) > longest:
    half = (longest - len(gap)) // 2
    text = f'{text[:half]}{gap}{text[-half:]}'
  return printable(text)


def shown(value: Any) -> str:
  """Returns the text of a user's value for a message, as `repr` gives it.

  A program or a file may contain any value: text of megabytes, lists nested a
  thousand deep, numbers with too many digits for Python, or objects whose own
  `__repr__` fails. The middle of a long text is left out.

  Args:
    value: Any object.
  """
  short = reprlib.Repr()
  short.maxstring = short.maxlong = short.maxother = _LONGEST_VALUE
  try:
    return one_line(short.repr(value), _LONGEST_VALUE)
  except Exception:  # Code of the program may raise anything.
    return f'<value of type {type(value).__name__}>'


def first_line(error: BaseException) -> str:
  """Returns the first line of an error's text, or the error's type.

  A full stop at the end of the line is left out.

  Args:
    error: An error. Its type is the result if it has no text.
  """
  text = str(getattr(error, 'message', None) or error).strip()
  if not text:
    return type(error).__name__
  return printable(text.splitlines()[0].rstrip('.'))


def described(error: BaseException, longest: int = _LONGEST) -> str:
  """Returns an error as one line, which names the type unless a `GdpError`."""
  known = isinstance(error, GdpError)
  return one_line(error if known else f'{type(error).__name__}: {error}',
                  longest)


def printable(text: object) -> str:
  """Returns text with '?' for each unprintable character but line breaks."""
  text = str(text)
  if text.isprintable():
    return text
  return ''.join(c if c.isprintable() or c == '\n' else '?' for c in text)


class GdpError(Exception):
  """Base of the errors for users, except wrong values of options."""


class InvalidGraphError(GdpError):
  """A graph is missing, unreadable or not a dataflow graph."""


class InfeasiblePlacementError(GdpError):
  """An op has no legal device, or a placement is illegal or does not fit."""


class ClusterError(GdpError):
  """A cluster or a device name is unknown, or a cluster file is wrong."""


class DeviceNameError(ClusterError):
  """A text is not a device name, whatever the cluster."""


class PlanError(GdpError):
  """A plan file is unreadable or was made for another graph or cluster."""


class PolicyMismatchError(GdpError):
  """A policy is missing, unreadable or made for other features."""


class PluginError(GdpError):
  """The native libraries are missing or do not fit this TensorFlow."""


class MeasurementError(GdpError):
  """A graph could not be run in order to time it."""
