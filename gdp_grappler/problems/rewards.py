"""By what programs judge placements."""

from __future__ import annotations

# The simulator; a stopwatch; TensorFlow's runtime over emulated GPUs.
SIMULATED, MEASURED, EMULATED = 'simulated', 'measured', 'emulated'
ALL = (SIMULATED, MEASURED, EMULATED)
