"""The decision about a graph."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Outcome:
  """What to do with a graph.

  Attributes:
    devices: [N] device of each node of the GraphDef; None to leave it alone.
    message: One line for the user; '' for nothing worth saying.
    control_edges: Nodes (first, then) that are to keep this order.
    before_s: Predicted step as it was; None where nothing was priced.
    after_s: Predicted step as it will be.
    graph: Serialized GraphDef that takes the place of the one that was asked
      about, and whose nodes these are; None to leave it there.
    fitted: Whether it fits the memories as it was.
  """

  devices: tuple[str, ...] | None
  message: str
  control_edges: tuple[tuple[int, int], ...] = ()
  before_s: float | None = None
  after_s: float | None = None
  graph: bytes | None = None
  fitted: bool = True


def leave_alone(source: Any, settings: Any) -> Outcome:
  """Decides that a graph stays as it was, without a word."""
  del source, settings
  return Outcome(None, '')
