"""The phases in the life of a train function."""

from __future__ import annotations

import enum

from gdp_grappler.plugin.fitting import ways


class Phase(enum.Enum):
  """A phase, which decides what the next call does."""

  LOOKING = 'looking'  # Asks whether the steps of a loop can run one by one.
  PLANNING = 'planning'  # Has the step planned; it may be cancelled.
  TIMING = 'timing'  # Times a way to run the step.
  STOCK = 'stock'  # Runs the function of Keras, with XLA.
  PREPARED = 'prepared'  # Runs the function that can be placed, as it is.
  ONE_BY_ONE = 'one by one'  # The same, without a loop over several steps.


AFTER_PLANNING = {Phase.STOCK, Phase.PREPARED, Phase.ONE_BY_ONE}


def of_way(way: ways.FitWay) -> Phase:
  """Returns the phase in which steps run in a way."""
  if way.is_placed:
    return Phase.ONE_BY_ONE
  return Phase.STOCK if way is ways.FitWay.XLA else Phase.PREPARED
