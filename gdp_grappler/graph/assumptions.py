"""Default values for what a graph leaves open. Users may give others."""

from __future__ import annotations

# Size of dimensions that a graph leaves open.
DEFAULT_BATCH_SIZE = 32
# Iterations of while loops whose number the graph does not tell. If such loops
# are nested, this is the product of their iterations.
DEFAULT_TRIP_COUNT = 32

# Whether ops keep the devices that a program requests by `tf.device`.
PINS = PINS_KEPT, PINS_IGNORED = 'keep', 'ignore'
