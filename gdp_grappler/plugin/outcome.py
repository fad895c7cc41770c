"""The decision about a graph."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Outcome:
  """The decision about a graph.

  Attributes:
    devices: [N] device of each node of the GraphDef. None means that the graph
      stays as it was.
    message: One line for the user; '' for no line.
    control_edges: Pairs of node indices (first, then). The second node waits
      for the first.
    before_s: Predicted step time of the graph as it was, in seconds. None if
      nothing was priced, infinite if an op was not on the device of its pin.
    after_s: Predicted step time after the decision, in seconds, or None.
    graph: Serialized GraphDef with N nodes that replaces the graph. None keeps
      the graph.
    fitted: Whether the graph as it was fits the memories.
    topic: A program prints one line per topic, about the first graph that has
      it. '' if each graph has its line.
  """

  devices: tuple[str, ...] | None
  message: str
  control_edges: tuple[tuple[int, int], ...] = ()
  before_s: float | None = None
  after_s: float | None = None
  graph: bytes | None = None
  fitted: bool = True
  topic: str = ''


def leave_alone(source: Any, settings: Any) -> Outcome:
  """Decides that a graph stays as it was, without a line for the user."""
  del source, settings
  return Outcome(None, '')
