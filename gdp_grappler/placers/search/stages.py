"""The stages of a search, as data."""

from __future__ import annotations

import dataclasses
import enum


class StageOrder(enum.Enum):
  """The order of ops in the prices of a stage, and the annealing that runs."""

  # Ops run first in, first out, as in TensorFlow. Several short annealings run
  # one after another. Each of them has a start of its own.
  SHORT_FIFO = 'short_fifo'
  # Ops run first in, first out. The long annealing runs, and begins with the
  # best placement so far.
  FIFO = 'fifo'
  PRIORITIES = 'priorities'
  FASTER = 'faster'  # The order of the annealing with the faster placement.


@dataclasses.dataclass(frozen=True)
class Stage:
  """A stage of a search.

  Attributes:
    order: Order of ops in the annealings of the stage.
    until: Progress of the whole search, from 0 to 1, at which the stage ends.
    cooled: Progress of the long annealing of that order, from 0 to 1, at the
      end of the stage. The progress of an annealing determines its temperature.
      Short annealings cool down completely. The long annealing begins with
      their best placement, at a higher temperature.
  """

  order: StageOrder
  until: float
  cooled: float


# Stages of a problem without control edges.
FIFO_ONLY = (
    Stage(StageOrder.SHORT_FIFO, until=.5, cooled=.3),
    Stage(StageOrder.FIFO, until=1., cooled=1.),
)
# Stages of a problem with control edges. The annealing of each order first has
# its hot part. The annealing with the faster placement then goes on.
BOTH_ORDERS = (
    Stage(StageOrder.SHORT_FIFO, until=.125, cooled=.3),
    Stage(StageOrder.FIFO, until=.25, cooled=.5),
    Stage(StageOrder.PRIORITIES, until=.5, cooled=.5),
    Stage(StageOrder.FASTER, until=1., cooled=1.),
)


@dataclasses.dataclass(frozen=True)
class Stretch:
  """The part of a search in which one annealing runs.

  Attributes:
    begin: Progress of the whole search, from 0 to 1, at the start of the part.
    end: Progress of the whole search at the end of the part.
    cooled_from: Progress of the annealing at the start of the part.
    cooled_to: Progress of the annealing at the end of the part.
  """

  begin: float = 0.
  end: float = 1.
  cooled_from: float = 0.
  cooled_to: float = 1.

  def cooled(self, progress: float) -> float:
    """Progress of the annealing at a given progress of the whole search."""
    share = max(progress - self.begin, 0.) / (self.end - self.begin)
    return self.cooled_from + (self.cooled_to - self.cooled_from) * share


WHOLE = Stretch()
