"""The phases of a train function."""

from __future__ import annotations

import enum

from gdp_grappler.plugin.fitting import ways


class Phase(enum.Enum):
  """A phase, which decides what the next call does."""

  LOOKING = 'looking'  # Checks whether steps of a loop can run one by one.
  PLANNING = 'planning'  # The pass plans the step; the call may be cancelled.
  TIMING = 'timing'  # Times a way to run the step.
  STOCK = 'stock'  # Runs Keras' own function, with XLA.
  PREPARED = 'prepared'  # Runs the placeable function, in Keras' loop if any.
  ONE_BY_ONE = 'one by one'  # Runs the placeable function without a loop.


AFTER_PLANNING = {Phase.STOCK, Phase.PREPARED, Phase.ONE_BY_ONE}


def of_way(way: ways.FitWay) -> Phase:
  """Returns the phase in which steps run in a way."""
  if way.is_placed:
    return Phase.ONE_BY_ONE
  return Phase.STOCK if way is ways.FitWay.XLA else Phase.PREPARED
