"""Messages between `calibrator` and its process; needs no TensorFlow."""

from __future__ import annotations

import dataclasses

from gdp_grappler.cluster import calibration as calibration_lib

# 'package.module:function' that the process runs.
WORKER = 'gdp_grappler.evaluation.calibrating.calibrating_worker:main'


@dataclasses.dataclass(frozen=True)
class Setup:
  """What to calibrate.

  Attributes:
    device_type: 'GPU', or 'CPU' for a CPU in place of a card.
    number: Of the GPU, as TensorFlow counts them.
  """

  device_type: str = 'GPU'
  number: int = 0


@dataclasses.dataclass(frozen=True)
class Card:
  """The card that was found.

  Attributes:
    name: The card's own name.
    driver: Its version; '' if unknown.
    tensorflow: Version that runs.
  """

  name: str
  driver: str
  tensorflow: str


@dataclasses.dataclass(frozen=True)
class Answer:
  """What a step gave.

  Attributes:
    figures: Of `calibration.FIGURES`.
    kernels: Of an op type.
    left_out: What was not measured, and why.
    complete: Whether nothing was left out for want of time.
  """

  figures: dict[str, float] = dataclasses.field(default_factory=dict)
  kernels: tuple[calibration_lib.Kernel, ...] = ()
  left_out: tuple[str, ...] = ()
  complete: bool = True
