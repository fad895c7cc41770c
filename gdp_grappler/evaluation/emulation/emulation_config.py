"""How steps are emulated."""

from __future__ import annotations

import dataclasses

from gdp_grappler import errors


@dataclasses.dataclass(frozen=True)
class EmulationConfig:
  """How an `Emulator` runs placements.

  Attributes:
    steps: Steps that count; the step time is their median.
    timeout_s: A placement whose steps take longer together hangs.
  """

  steps: int = 1
  timeout_s: float = 300.

  def __post_init__(self) -> None:
    for field in ('steps', 'timeout_s'):
      if getattr(self, field) <= 0:
        raise errors.MeasurementError(
            f'{field} is {getattr(self, field)}; give more than 0.')
