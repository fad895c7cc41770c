"""Messages between `calibrator` and its process.

This module does not import TensorFlow.
"""

from __future__ import annotations

import dataclasses

from gdp_grappler.cluster import calibration as calibration_lib

# 'package.module:function' that the process runs.
WORKER = 'gdp_grappler.evaluation.calibrating.calibrating_worker:main'


@dataclasses.dataclass(frozen=True)
class Setup:
  """The device to calibrate.

  Attributes:
    device_type: 'GPU', or 'CPU' for a CPU in place of a card.
    number: Number of the GPU, as TensorFlow counts GPUs.
  """

  device_type: str = 'GPU'
  number: int = 0


@dataclasses.dataclass(frozen=True)
class Card:
  """The card that was found.

  Attributes:
    name: Name that the card reports.
    driver: Version of the card's driver; '' if unknown.
    tensorflow: Version of TensorFlow.
  """

  name: str
  driver: str
  tensorflow: str


@dataclasses.dataclass(frozen=True)
class Answer:
  """The result of a step.

  Attributes:
    figures: Values by name, see `calibration.FIGURES`.
    kernels: Measured kernels of one op type.
    left_out: Lines about figures and sizes that were not measured, with the
      reason.
    complete: False if something was left out because time ran out.
  """

  figures: dict[str, float] = dataclasses.field(default_factory=dict)
  kernels: tuple[calibration_lib.Kernel, ...] = ()
  left_out: tuple[str, ...] = ()
  complete: bool = True
