"""Peak rates of processors that are in no table, from their clocks."""

from __future__ import annotations


def gpu_flops(multiprocessors: int, hertz: float,
              capability: tuple[int, int]) -> float:
  """Float32 operations per second: multiprocessors x lanes x clock x 2.

  As in Grappler's `OpLevelCostEstimator::GetDeviceInfo`
  (tensorflow/core/grappler/costs/op_level_cost_estimator.cc), there are 32
  lanes before Kepler, 192 for Kepler and 128 for Maxwell. Grappler takes 64
  lanes for all later capabilities. This function takes 128 for 6.1, 6.2, 8.6
  and later ones (CUDA C++ Programming Guide, table of arithmetic throughput).
  """
  major = capability[0]
  if major < 6:
    lanes = {3: 192, 5: 128}.get(major, 32)
  elif capability in ((6, 1), (6, 2)) or capability > (8, 0):
    lanes = 128
  else:
    lanes = 64
  return multiprocessors * lanes * hertz * 2.


def cpu_flops(cores: int, hertz: float, instruction_sets: str) -> float:
  """Float32 operations per second: cores x clock x operations per cycle.

  The function assumes that a core has two fused multiply-add units for AVX2 and
  AVX-512, and a multiplier and an adder for AVX and SSE. For other instruction
  sets it takes one operation per cycle, as Grappler does for all.

  Args:
    cores: Number of cores.
    hertz: Clock of the cores.
    instruction_sets: Names of instruction sets, as Grappler writes them into
      the environment of a CPU's `DeviceProperties`: 'AVX512, FMA, AVX2, AVX,
      SSE4.2'.
  """
  per_cycle = next(
      (flops
       for name, flops in (('AVX512', 64), ('AVX2', 32), ('AVX', 16),
                           ('SSE', 8)) if name in instruction_sets.upper()), 1)
  return cores * hertz * per_cycle
