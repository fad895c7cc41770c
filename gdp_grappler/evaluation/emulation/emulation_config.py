"""How steps are emulated."""

from __future__ import annotations

import dataclasses

from gdp_grappler import errors


@dataclasses.dataclass(frozen=True)
class EmulationConfig:
  """How an `Emulator` runs placements.

  Attributes:
    steps: Steps that count; the step time is their median.
    time_scale: How much longer everything takes than it would, so that a busy
      machine disturbs less. What the devices say of dispatch and callbacks is
      stretched as well, less what TensorFlow itself takes for them here, once.
    least_s: What a step shall take by the clock: shorter ones, as simulated,
      take longer than `time_scale` says. 0 for nothing of the kind.
    timeout_s: A placement whose steps take longer together hangs.
  """

  steps: int = 3
  time_scale: float = 1.
  least_s: float = .1
  timeout_s: float = 300.

  def __post_init__(self) -> None:
    for field in ('steps', 'time_scale', 'timeout_s'):
      if getattr(self, field) <= 0:
        raise errors.MeasurementError(
            f'{field} is {getattr(self, field)}; give more than 0.')
