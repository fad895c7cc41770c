"""The progress of planning and timing the step of a model, under one option."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING

from gdp_grappler.plugin import settings as settings_lib
from gdp_grappler.plugin.fitting import guard
from gdp_grappler.plugin.fitting import plan as plan_lib
from gdp_grappler.plugin.fitting import ways
from gdp_grappler.reports import units

if TYPE_CHECKING:
  from gdp_grappler.graph import source_graph
  from gdp_grappler.plugin import outcome as outcome_lib

# After this number of steps in a row with another batch size, timing begins
# anew with that size.
_MOST_OTHER_STEPS = 8
_CPU_FLAG = 'tf_xla_cpu_global_jit'


@dataclasses.dataclass(frozen=True)
class FitReport:
  """The state of a train function, for users.

  Attributes:
    placed_ops: Numbers of ops by the short name of their device, with the name
      of the host if there are several hosts. Empty if the step runs as
      TensorFlow placed it.
    moved_variables: Number of variables that are not on the device on which
      they were made.
    predicted_s: Predicted seconds of a placed step; None without a plan.
    before_s: Measured median seconds of steps as Keras would run them; None if
      not measured.
    placed_s: Measured median seconds of placed steps, in the fastest way; None
      if not measured.
    predicted_before_s: Predicted seconds of a step as it was; None without a
      plan.
    way: The way in which the step runs, a value of `ways.FitWay`.
  """

  placed_ops: dict[str, int]
  moved_variables: int = 0
  predicted_s: float | None = None
  before_s: float | None = None
  placed_s: float | None = None
  predicted_before_s: float | None = None
  way: str = ways.FitWay.AS_IT_WAS.value


@dataclasses.dataclass
class Course:
  """The state of planning and timing.

  Attributes:
    plan: The plan; None before the step is planned.
    comparison: The comparison of the ways that are timed; None without one.
    way: The way in which steps run now.
    is_decided: Whether steps will stay in this way.
    timing: The timing of steps that run in this way.
    moving_s: Seconds that the latest move of variables for the plan took.
    batch_size: Size of the batches that are timed; None if unknown.
    other_size: Size of the latest batch that was left out of the timing.
    other_steps: Number of latest steps in a row of this size.
    instead: Devices of a step that cannot follow the plan; None if it follows.
  """

  plan: plan_lib.FitPlan | None = None
  comparison: ways.WayComparison | None = None
  way: ways.FitWay = ways.FitWay.AS_IT_WAS
  is_decided: bool = False
  timing: guard.StepTiming = dataclasses.field(default_factory=guard.StepTiming)
  moving_s: float = 0.
  batch_size: int | None = None
  other_size: int | None = None
  other_steps: int = 0
  instead: plan_lib.FitPlan | None = None

  @property
  def stays(self) -> bool:
    """Whether it is decided that steps are not placed."""
    return self.is_decided and not self.way.is_placed

  def enter(self, way: ways.FitWay) -> None:
    """Makes steps run in a way from now on, and times them anew."""
    self.way = way
    is_clustered = way is ways.FitWay.CLUSTERS
    self.timing = (guard.StepTiming(guard.WARM_UP_OF_CLUSTERS)
                   if is_clustered else guard.StepTiming())

  def give_up(self, way: ways.FitWay) -> None:
    """Decides for a way, because steps cannot be placed."""
    self.enter(way)
    self.is_decided = True

  def moved_in(self, seconds: float) -> None:
    """Records the seconds that the latest move of variables took."""
    if self.plan is not None and self.plan.moves:
      self.moving_s = seconds

  def times(self, size: int | None) -> bool:
    """Whether to time a step; counts the steps that are not timed.

    After several steps in a row of another size, the comparison is forgotten,
    and timing has to begin anew. Single steps, such as that of a smaller last
    batch, are only left out.

    Args:
      size: Size of the batches of the step; None if unknown.
    """
    if size is None or self.batch_size in (None, size):
      self.batch_size = size or self.batch_size
      self.other_steps = 0
      return True
    self.other_steps = self.other_steps + 1 if size == self.other_size else 1
    self.other_size = size
    if self.other_steps < _MOST_OTHER_STEPS:
      return False
    self.comparison, self.batch_size, self.other_steps = None, size, 0
    return True

  def note(self, steps_per_call: int) -> ways.FitWay:
    """Records the timing of the present way.

    Args:
      steps_per_call: Number of steps in each timed call.

    Returns:
      The way to be timed next or, after the last one, the way that stays.
    """
    assert self.comparison is not None
    self.comparison.note(
        self.way,
        ways.Figures(self.timing.median_s / steps_per_call, self.timing.steps,
                     self.timing.compile_s))
    waiting = self.comparison.next
    self.is_decided = waiting is None
    return waiting or self.comparison.best

  def note_placed(self, source: source_graph.SourceGraph,
                  outcome: outcome_lib.Outcome, function: str) -> None:
    """Records the devices of a placed step.

    Args:
      source: Graph of the step.
      outcome: Result of `plan.follow`. It has a message only if the step cannot
        follow, because the user has relocated variables or the graph differs.
      function: TensorFlow's name of the step. The step of a smaller last batch
        has another name, and may follow where the usual step cannot.
    """
    if outcome.message:
      names = (node.name for node in source.graph_def.node)
      devices = dict(zip(names, outcome.devices or ()))
      self.instead = plan_lib.FitPlan(devices, (), outcome, function=function)
    elif self.instead is not None and self.instead.function == function:
      self.instead = None

  def report(self, moved_variables: int) -> FitReport:
    """Returns the state for users.

    Args:
      moved_variables: Number of variables that are not on the device on which
        they were made.
    """
    plan = self.instead if self.way.is_placed and self.instead else self.plan
    if plan is None or not plan.changes:
      return FitReport({}, way=self.way.value)
    return FitReport(
        plan.counts if self.way.is_placed else {}, moved_variables,
        plan.outcome.after_s,
        self._measured_s(self.comparison.baseline) if self.comparison else None,
        self._measured_s(ways.FitWay.PLACED, ways.FitWay.CLUSTERS),
        plan.outcome.before_s, self.way.value)

  def _measured_s(self, *several: ways.FitWay) -> float | None:
    """Least measured seconds of a step in several ways; None if not timed."""
    known = self.comparison.measured if self.comparison else {}
    return min((known[way].step_s for way in several if way in known),
               default=None)

  def compare(self, plan: plan_lib.FitPlan, has_xla: bool,
              settings: settings_lib.Settings) -> ways.FitWay:
    """Returns the way to be timed first, or next if timing has begun.

    Args:
      plan: A plan that changes a device or an edge.
      has_xla: Whether Keras would compile the step by XLA.
      settings: The user's option.
    """
    if self.comparison is None:
      self.comparison = _comparison(plan, has_xla, settings)
    return self.comparison.next or self.comparison.best

  def describe(self, steps_per_call: int) -> str:
    """Returns a line with the timings, and the time that the user waited."""
    assert self.comparison is not None
    said = self.comparison.describe(steps_per_call)
    placed = self.comparison.measured.get(ways.FitWay.PLACED)
    spent_s = self.moving_s + (placed.compile_s if placed else 0.)
    if not spent_s:
      return said
    moving = 'moving variables and ' if self.moving_s else ''
    return (f'{said}; {units.ms(spent_s, 3)} spent on {moving}building the '
            'placed step')


def of_comparison(plan: plan_lib.FitPlan, way: ways.FitWay,
                  has_xla: bool) -> str:
  """Returns the line of a plan whose steps are going to be compared.

  Args:
    plan: A plan that changes a device or an edge.
    way: The way in which the next steps run.
    has_xla: Whether Keras would compile the step by XLA.
  """
  if way is ways.FitWay.XLA:
    said = 'the first steps run with XLA'
  else:
    said = ('the next steps run without XLA'
            if has_xla else 'the first steps run as they were')
  return f'{plan.describe()}; {said}, to compare'


def of_kept_xla(plan: plan_lib.FitPlan, what: str, is_certain: bool) -> str:
  """Returns the line of a plan that is not compared with XLA.

  The line is '' if the plan is followed.

  Args:
    plan: Plan of a step that Keras compiles by XLA.
    what: Name of the step for users, such as 'fit of "sequential"'.
    is_certain: Whether the step is placed without a comparison.
  """
  if not plan.changes:
    said = plan.describe() or f'{what}: nothing to place'
    return f'{said}; stays with XLA, as Keras chose'
  if is_certain:
    return ''
  return (
      f'{plan.describe()}; it stays with XLA, as Keras chose: it draws random '
      'numbers from streams, and timing it placed would begin them again')


def _comparison(plan: plan_lib.FitPlan, has_xla: bool,
                settings: settings_lib.Settings) -> ways.WayComparison:
  """Returns the comparison of the ways that are timed for a plan.

  Args:
    plan: A plan that changes a device or an edge.
    has_xla: Whether Keras would compile the step by XLA.
    settings: The user's option.
  """
  predicted = {
      ways.FitWay.AS_IT_WAS: plan.outcome.before_s,
      ways.FitWay.PLACED: plan.outcome.after_s
  }
  known_s = {} if settings.has_decided else {
      way: seconds for way, seconds in predicted.items() if seconds is not None
  }
  result = ways.WayComparison(ways.stock(has_xla), known_s,
                              settings.xla_compile_s)
  if not _may_cluster(plan):
    result.without_clusters()
  return result


def _may_cluster(plan: plan_lib.FitPlan) -> bool:
  """Whether XLA would make clusters on devices of a plan.

  On CPUs XLA makes clusters only if a flag of TensorFlow says so.
  """
  return (any('GPU:' in device for device in plan.devices.values()) or
          _CPU_FLAG in os.environ.get('TF_XLA_FLAGS', ''))
