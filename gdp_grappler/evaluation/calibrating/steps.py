"""The steps of a calibration, the most important first.

The results of a step that ran out of time are dropped. So a later calibration
begins with the first missing step.
"""

from __future__ import annotations

import dataclasses

from gdp_grappler.evaluation.calibrating import suite

OPS, HOPS, LINKS, TOGETHER = 'ops', 'hops', 'links', 'side by side'


@dataclasses.dataclass(frozen=True)
class CalibrationStep:
  """A part of a calibration.

  Attributes:
    name: Name in messages and files.
    kind: Op type that is timed; None for figures of the host.
    finer: Whether the step measures the sizes between the coarse ones.
  """

  name: str
  kind: suite.Kind | None = None
  finer: bool = False

  @property
  def sizes(self) -> tuple[tuple[int, ...], ...]:
    """Sizes of the op type that the step measures."""
    if self.kind is None:
      return ()
    return self.kind.finer if self.finer else self.kind.coarse


def all_steps() -> tuple[CalibrationStep, ...]:
  """All steps, in the order in which they are measured."""
  coarse = [CalibrationStep(kind.op_type, kind) for kind in suite.KINDS]
  finer = [
      CalibrationStep(f'{kind.op_type}, finer', kind, True)
      for kind in suite.KINDS if kind.finer
  ]
  return (CalibrationStep(OPS), CalibrationStep(HOPS), *coarse,
          CalibrationStep(LINKS), CalibrationStep(TOGETHER), *finer)
