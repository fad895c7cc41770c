"""Ways to run a step: which of them are tried, and which one stays.

This module is pure: its input is predictions and measurements, and it runs
nothing.
"""

from __future__ import annotations

import dataclasses
import enum
from typing import Mapping

from gdp_grappler.reports import units

# The least predicted gain for which clusters are compiled, because compiling
# takes the user's time.
_LEAST_GAIN_OF_CLUSTERS = .05


class FitWay(enum.Enum):
  """A way to run a step."""

  XLA = 'with XLA'
  AS_IT_WAS = 'as it was'
  PLACED = 'placed'
  CLUSTERS = 'placed, with XLA inside each device'

  @property
  def is_placed(self) -> bool:
    """Whether the step and its variables have the devices of the plan."""
    return self in (FitWay.PLACED, FitWay.CLUSTERS)


@dataclasses.dataclass(frozen=True)
class Figures:
  """Measurements of one way to run a step.

  Attributes:
    step_s: Median time of a step, in seconds.
    calls: Number of timed calls.
    compile_s: Extra time of the calls before the timed ones, in seconds. With
      XLA, compilation takes most of it.
  """

  step_s: float
  calls: int
  compile_s: float = 0.


def stock(has_xla: bool) -> FitWay:
  """Returns the way in which Keras runs the step without the option.

  Args:
    has_xla: Whether Keras compiles the step by XLA.
  """
  return FitWay.XLA if has_xla else FitWay.AS_IT_WAS


class WayComparison:
  """Compares the step as Keras would run it with ways that may be faster.

  If Keras chose XLA, a way is tried only if its predicted step is shorter than
  the shortest measured step. Most predictions are too short, because they leave
  out a part of the time of a real step. So a way that is not faster may be
  tried, too.
  """

  def __init__(self, baseline: FitWay, predicted_s: Mapping[FitWay, float],
               compile_budget_s: float = 0.) -> None:
    """Creates a comparison without measurements.

    Args:
      baseline: The way in which Keras would run the step: `XLA` or `AS_IT_WAS`.
      predicted_s: Predicted seconds of a step, for `AS_IT_WAS` and `PLACED`. A
        way without a prediction is always tried.
      compile_budget_s: Clusters are not tried if XLA took longer to compile the
        whole step.
    """
    self.baseline = baseline
    self.measured: dict[FitWay, Figures] = {}
    self._predicted_s = predicted_s
    self._compile_budget_s = compile_budget_s
    # Clusters come last, because measurements of other ways predict them.
    self._candidates: tuple[FitWay, ...] = ((FitWay.PLACED, FitWay.AS_IT_WAS,
                                             FitWay.CLUSTERS) if baseline
                                            is FitWay.XLA else (FitWay.PLACED,))

  @property
  def next(self) -> FitWay | None:
    """Returns the way to be timed now; None if all are timed."""
    if self.baseline not in self.measured:
      return self.baseline
    return next((way for way in self._candidates
                 if way not in self.measured and not self.why_not(way)), None)

  @property
  def best(self) -> FitWay:
    """Returns the fastest timed way; the baseline if no way beats it."""
    return min(self.measured, key=lambda way: self.measured[way].step_s)

  def note(self, way: FitWay, figures: Figures) -> None:
    """Records the measurements of a way. The baseline comes first."""
    self.measured[way] = figures

  def without_clusters(self) -> None:
    """Leaves out `CLUSTERS`, if XLA makes none on the devices of the plan."""
    self._candidates = self._candidates[:2]

  def predicted_s(self, way: FitWay) -> float | None:
    """Predicted seconds of a step; None if unknown.

    XLA inside each device is expected to shorten the placed step by the same
    factor as the whole step.
    """
    if way is not FitWay.CLUSTERS:
      return self._predicted_s.get(way)
    placed_s, stock_s = map(self._known_s, (FitWay.PLACED, FitWay.AS_IT_WAS))
    if placed_s is None or not stock_s:
      return None
    return placed_s * self.measured[FitWay.XLA].step_s / stock_s

  def why_not(self, way: FitWay) -> str:
    """Reason why a way need not be timed; '' if it should be timed."""
    if self.baseline is not FitWay.XLA:
      return ''  # Only placed steps are timed beside the baseline.
    if way is FitWay.CLUSTERS:
      compile_s = self.measured[FitWay.XLA].compile_s
      if compile_s > self._compile_budget_s:
        return (f'XLA took {compile_s:.3g} s to compile, and xla_compile_s is '
                f'{self._compile_budget_s:g}')
    predicted_s = self.predicted_s(way)
    to_beat_s = self.measured[self.best].step_s
    if way is FitWay.CLUSTERS:
      to_beat_s *= 1 - _LEAST_GAIN_OF_CLUSTERS
    if predicted_s is None or predicted_s < to_beat_s:
      return ''
    return f'predicted {_ms(predicted_s)}'

  def describe(self, steps_per_call: int = 1) -> str:
    """Returns a line with all figures, and the way that stays."""
    *most, last = [str(figures.calls) for figures in self.measured.values()]
    calls = f'{", ".join(most)} and {last}' if most else last
    several = f' of {steps_per_call} steps' if steps_per_call > 1 else ''
    said = ', '.join(f'{_ms(figures.step_s * steps_per_call)} {self._name(way)}'
                     for way, figures in self.measured.items())
    said = f'{said} (measured, medians of {calls} calls{several})'
    if self.baseline is not FitWay.XLA:
      return f'{said}: {self._verdict()}'
    left_out = [
        f'; {self._name(way)}: not tried, {self.why_not(way)}'
        for way in self._candidates if way not in self.measured
    ]
    clusters = self.measured.get(FitWay.CLUSTERS)
    more = f' and {clusters.compile_s:.3g} s for clusters' if clusters else ''
    said = (f'{said}; XLA took {self.measured[FitWay.XLA].compile_s:.3g} s to '
            f'compile{more}{"".join(left_out)}: {self._verdict()}')
    return (f'{said}. Steps ran in these ways in turn, and XLA rounds '
            "differently from TensorFlow's kernels")

  def in_short(self) -> str:
    """Returns the way that stays, for a reader who knows the figures."""
    if self.best is FitWay.AS_IT_WAS and self.baseline is self.best:
      return 'left as it was, which was measured to be no slower than placed'
    return f'{self._verdict()}; it was measured before'

  def _known_s(self, way: FitWay) -> float | None:
    if way in self.measured:
      return self.measured[way].step_s
    return self._predicted_s.get(way)

  def _name(self, way: FitWay) -> str:
    if way is FitWay.AS_IT_WAS and self.baseline is FitWay.XLA:
      return 'without XLA'
    return way.value

  def _verdict(self) -> str:
    best = self.best
    if best is FitWay.AS_IT_WAS and self.baseline is best:
      return 'goes back to what it was'
    if best is FitWay.XLA:
      return 'stays with XLA, as Keras chose'
    return f'stays {self._name(best)}'


def _ms(seconds: float) -> str:
  return units.ms(seconds, 3)
