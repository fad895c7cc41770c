"""Defaults of facts that a graph lacks. Users may give other values."""

from __future__ import annotations

# Size of dimensions that a graph does not know.
DEFAULT_BATCH_SIZE = 32
# Iterations of while loops of unknown length. If such loops are nested, this is
# the product of their iterations.
DEFAULT_TRIP_COUNT = 32

# Whether ops keep the devices that a program requests by `tf.device`.
PINS = PINS_KEPT, PINS_IGNORED = 'keep', 'ignore'
