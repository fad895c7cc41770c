"""Errors that users see. Each message says what, why, and what to do."""

from __future__ import annotations

_LONGEST = 2000


def one_line(message: object) -> str:
  """What to print of an error or a notice.

  Names that stand in it may come from anybody's file: they may have new lines,
  commands for the terminal, or megabytes.
  """
  text = ' '.join(str(message).split())
  if len(text) > _LONGEST:
    text = f'{text[:_LONGEST // 2]} ... {text[-_LONGEST // 2:]}'
  return printable(text)


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
