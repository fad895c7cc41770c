"""Settings of the emulator."""

from __future__ import annotations

import dataclasses

from gdp_grappler import errors


@dataclasses.dataclass(frozen=True)
class EmulationConfig:
  """Settings of an `Emulator`.

  Attributes:
    steps: Number of timed steps; the step time is their median.
    timeout_s: Seconds after which a placement counts as hanging, for all its
      steps together.
  """

  steps: int = 1
  timeout_s: float = 300.

  def __post_init__(self) -> None:
    for field in ('steps', 'timeout_s'):
      if getattr(self, field) <= 0:
        raise errors.MeasurementError(
            f'{field} is {getattr(self, field)}; give more than 0.')
