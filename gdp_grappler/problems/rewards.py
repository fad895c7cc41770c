"""The kinds of rewards: how programs judge placements."""

from __future__ import annotations

# By the simulator, by a clock on real devices, or by TensorFlow's runtime over
# emulated GPUs.
SIMULATED, MEASURED, EMULATED = 'simulated', 'measured', 'emulated'
ALL = (SIMULATED, MEASURED, EMULATED)
