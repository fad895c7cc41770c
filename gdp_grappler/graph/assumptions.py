"""What stands for what a graph does not tell, unless a user says otherwise."""

from __future__ import annotations

# Size of dimensions that a graph leaves open.
DEFAULT_BATCH_SIZE = 32
# Iterations of while loops whose number it does not tell; of such loops within
# one another, of all together.
DEFAULT_TRIP_COUNT = 32

# What becomes of devices that a program asked for by `tf.device`.
PINS = PINS_KEPT, PINS_IGNORED = 'keep', 'ignore'
