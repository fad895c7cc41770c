"""The stages of a search, as data."""

from __future__ import annotations

import dataclasses
import enum


class Order(enum.Enum):
  """The order in which ops run while a stage prices placements."""

  FIFO = 'fifo'  # First in, first out, as TensorFlow starts them.
  PRIORITIES = 'priorities'
  FASTER = 'faster'  # The order whose best placement is faster so far.


@dataclasses.dataclass(frozen=True)
class Stage:
  """A stretch of a search, in which one annealing goes on.

  Attributes:
    order: Which annealing goes on.
    until: Progress of the whole search, from 0 to 1, at which the stage ends.
    cooled: Progress of its annealing, from 0 to 1, that is reached then; it
      sets the temperature.
  """

  order: Order
  until: float
  cooled: float


# Where control edges cannot help, one annealing takes all of the time.
FIFO_ONLY = (Stage(Order.FIFO, until=1., cooled=1.),)
# Else both orders get the hot half of an annealing, and the faster one the cold
# half.
BOTH_ORDERS = (
    Stage(Order.FIFO, until=.25, cooled=.5),
    Stage(Order.PRIORITIES, until=.5, cooled=.5),
    Stage(Order.FASTER, until=1., cooled=1.),
)


@dataclasses.dataclass(frozen=True)
class Stretch:
  """What one annealing does of a stage.

  Attributes:
    begin: Progress of the whole search, from 0 to 1, when it begins.
    end: Progress of the whole search when it ends.
    cooled_from: Progress of the annealing when it begins.
    cooled_to: Progress of the annealing when it ends.
  """

  begin: float = 0.
  end: float = 1.
  cooled_from: float = 0.
  cooled_to: float = 1.

  def cooled(self, progress: float) -> float:
    """Progress of the annealing at some progress of the whole search."""
    share = max(progress - self.begin, 0.) / (self.end - self.begin)
    return self.cooled_from + (self.cooled_to - self.cooled_from) * share


WHOLE = Stretch()


class Level(enum.Enum):
  """What moves as a whole in a smaller problem (`multilevel`)."""

  LAYERS = 'layers'
  PARTS = 'parts'  # Of recurrent layers: what a chain of time steps waits for.
  CELLS = 'cells'  # Time steps of layers or of their parts.


COARSE = (Level.LAYERS, Level.PARTS, Level.CELLS)
