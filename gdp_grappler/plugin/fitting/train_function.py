"""Wraps Keras' train function, whose step is planned in its first call.

In the first call the pass plans the step as if each variable could have any
device. Then the variables move. TensorFlow instantiates the function again for
the new devices, and this instance follows the plan. Without the guard, the
first call is cancelled before any op runs if variables move. With the guard,
first steps run as in Keras, next steps run placed, and the faster way stays.

If Keras compiles the step by XLA, a second function without XLA is made. Its
first call is planned and always cancelled. XLA computes its result, unless the
step is placed in any case. Later steps time ways that may be faster (`ways`).

If Keras puts several steps into a call, they are planned and placed one by one.
Steps that stay as they were run in Keras' own loop.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from typing import Any, Callable, Iterable, TYPE_CHECKING

import tensorflow as tf

from gdp_grappler import errors
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.sources import captures
from gdp_grappler.plugin import current_call
from gdp_grappler.plugin import devices
from gdp_grappler.plugin import notices
from gdp_grappler.plugin import outcome as outcome_lib
from gdp_grappler.plugin import settings as settings_lib
from gdp_grappler.plugin import task_links
from gdp_grappler.plugin import xla
from gdp_grappler.plugin.fitting import asked_weights
from gdp_grappler.plugin.fitting import batch_sizes
from gdp_grappler.plugin.fitting import calibration_notice
from gdp_grappler.plugin.fitting import cancelling
from gdp_grappler.plugin.fitting import course as course_lib
from gdp_grappler.plugin.fitting import fit_link_timing
from gdp_grappler.plugin.fitting import keras_function
from gdp_grappler.plugin.fitting import phases
from gdp_grappler.plugin.fitting import plan as plan_lib
from gdp_grappler.plugin.fitting import replay
from gdp_grappler.plugin.fitting import single_steps
from gdp_grappler.plugin.fitting import variable_moves
from gdp_grappler.plugin.fitting import ways

if TYPE_CHECKING:
  from gdp_grappler.plugin import library


class TrainFunction(keras_function.KerasFunction):
  """Plans the step, moves variables, and keeps the fastest way."""

  def __init__(self, function: Callable[..., Any], what: str, eager: bool,
               steps: single_steps.SingleSteps,
               make_placeable: Callable[[], Any] | None = None) -> None:
    """Wraps a function.

    Args:
      function: The train function of Keras.
      what: Name of the step for users, such as 'fit of "sequential"'.
      eager: Whether the function runs op by op.
      steps: The steps of its calls.
      make_placeable: See `KerasFunction`.
    """
    super().__init__(function, what, eager, make_placeable, model=steps.model)
    self._steps = steps
    # Whether Keras puts the steps of a call into a loop that can be avoided.
    self._has_loop = False
    # A course for each value of the option: the pass is called once for each.
    self._courses: dict[settings_lib.Settings, course_lib.Course] = {}
    self._course = course_lib.Course()
    # Plan of the placer thread, until `decided` says that it was made in time.
    self._pending: plan_lib.FitPlan | None = None
    self._origins: tuple[tuple[Any, str], ...] = ()
    self._canceller = cancelling.Canceller()
    self._phase = phases.Phase.PLANNING

  def report(self) -> course_lib.FitReport:
    """Returns the state for users."""
    if self._settings is None:
      stock = ways.stock(self.is_compiled_by_keras)
      return course_lib.FitReport({}, way=stock.value)
    return self._course.report(len(self._origins))

  def take_over(self, other: TrainFunction) -> None:
    """Continues with the plan of another function of the same model.

    Then nothing has to be planned, moved or timed again. If the other function
    has no plan yet, or still times steps, this one begins anew.
    """
    if other._course.plan is None or other._phase not in phases.AFTER_PLANNING:
      other.retire()
      return
    self._courses, self._course = other._courses, other._course
    self._course.instead = None  # `note_placed` sets it again.
    self._origins = other._origins
    self._settings, self._seen = other._settings, other._seen
    self._batch_size = other._batch_size
    self.is_placed, self.has_clusters = other.is_placed, other.has_clusters
    self._has_loop = other._has_loop
    self._choose_function()
    self._phase = phases.of_way(self._course.way)

  def is_of(self, model: Any) -> bool:
    """Whether the function trains this model object."""
    return self._steps.model is model

  def retire(self) -> None:
    """Moves variables back, because Keras makes another function.

    The new function is then planned and timed from TensorFlow's own devices.
    """
    self._undo()
    variable_moves.release(self._steps.model)

  def _run(self, *args: Any) -> Any:
    return self._step(*args)

  def _step(self, iterator: Any, phase: phases.Phase | None = None) -> Any:
    steps: dict[phases.Phase, Callable[[Any], Any]] = {
        phases.Phase.LOOKING: self._looking_step,
        phases.Phase.PLANNING: self._planning_step,
        phases.Phase.TIMING: self._timed_step,
        phases.Phase.STOCK: lambda it: self._steps.run(self._stock, it),
        phases.Phase.PREPARED: lambda it: self._steps.run(self._function, it),
        phases.Phase.ONE_BY_ONE: self._placeable_step
    }
    return steps[phase or self._phase](iterator)

  def _why_xla_stays(self) -> str:
    if self._xla is xla.Handling.KEPT:
      return super()._why_xla_stays()
    return (f'; its graph has fewer than {self._minimum()} ops and no pin, or '
            'was not planned in time')

  def _why_unseen(self) -> str:
    if self._phase is phases.Phase.LOOKING:
      return single_steps.WHY_NOT_PLANNED
    return super()._why_unseen()

  def _explain(self) -> None:
    course, plan = self._course, self._course.plan
    is_away = plan is not None and plan.changes and not self.is_placed
    if course.stays and course.comparison is not None:
      line = f'{self.what}: {course.comparison.in_short()}'
    elif plan is not None and is_away and self._phase is phases.Phase.TIMING:
      line = current_call.named(
          course_lib.of_comparison(plan, course.way, self._is_compared), self)
    elif plan is None or not plan.describe() or is_away:
      super()._explain()
      return
    else:
      # The option was off for a while. TensorFlow made no new instance.
      line = f'{current_call.named(plan.describe(), self)}; as before'
    self.was_told = True
    notices.say(line)

  def _switch(self, settings: settings_lib.Settings | None) -> None:
    super()._switch(settings)
    self._undo()
    if settings is None:
      return
    if task_links.is_own(settings.cluster):
      fit_link_timing.time_once()
      calibration_notice.tell_once()
    self._has_loop = (self._steps.can_be_single and len(devices.names()) > 1 and
                      not self._eager and
                      not captures.is_compiled(self._function) and
                      not devices.steps_stay(settings))
    course = self._courses.setdefault(settings, course_lib.Course())
    changed = course is not self._course
    self._course = course
    if self._xla is xla.Handling.KEPT:
      course.give_up(ways.FitWay.XLA)
      self._phase = phases.Phase.STOCK
    elif course.plan is None:
      looks = self._has_loop and not self._is_compared
      self._phase = phases.Phase.LOOKING if looks else phases.Phase.PLANNING
    elif course.is_decided:
      self._enter(course.way)
      self._phase = phases.of_way(course.way)
    elif course.comparison is not None:
      self._compare(course.plan)
    elif course.plan.changes:
      self._enter(ways.FitWay.PLACED)
      self._phase = phases.of_way(course.way)
    elif changed:
      self._phase = phases.Phase.PREPARED

  # The pass calls the methods below.

  def task(self, query: library.Query) -> current_call.Optimize | None:
    """Plans the step, follows the plan, or leaves the step alone."""
    concrete = captures.concrete_functions(self._function).get(query.graph_id)
    if concrete is None:
      return super().task(query)
    self._pending = None
    if self._phase is phases.Phase.LOOKING:
      return single_steps.of_a_loop
    if self._phase is phases.Phase.PLANNING and self._course.plan is None:
      if self._has_loop:
        self._canceller.cancel()
      return functools.partial(self._planned, query.graph_id, concrete)
    if self._course.plan is None:
      return None
    if self.is_placed:
      return functools.partial(self._followed, query.graph_id)
    waits = self._course.stays or self._would_guard(self._course.plan)
    return (outcome_lib.leave_alone
            if self._has_loop or self._course.plan.changes and waits else None)

  def _planned(self, function: str, concrete: Any,
               source: source_graph.SourceGraph,
               settings: settings_lib.Settings) -> outcome_lib.Outcome:
    """Plans the step. Runs on the placer thread."""
    received = captures.variables(concrete)
    if settings.plan is not None:  # A map of layers may name variables.
      captures.name_arguments(source.graph_def, received)
    received = received if settings.move_variables else {}
    asked = asked_weights.of(received, source, settings)
    unasked = [v for i, v in received.items() if i not in asked]
    free = set(map(id, variable_moves.movable(unasked, self._steps.model)))
    plan = plan_lib.make(source, settings,
                         {i: v for i, v in received.items() if id(v) in free},
                         function, asked)
    self._pending = plan
    if self._would_guard(plan):
      first_way = ways.stock(self._is_compared)
      return outcome_lib.Outcome(
          None, course_lib.of_comparison(plan, first_way, self._is_compared))
    if self._is_compared:
      return outcome_lib.Outcome(
          None, course_lib.of_kept_xla(plan, self.what, self._is_certain(plan)))
    waits = plan.moves or self._has_loop and plan.changes
    return outcome_lib.Outcome(None, '') if waits else plan.outcome

  def decided(self) -> None:
    """Takes the plan, and cancels the call if variables have to move first."""
    if self._pending is None:
      return
    self._course.plan, self._pending = self._pending, None
    if self._course.plan.moves and not self._would_guard(self._course.plan):
      self._canceller.cancel()

  def _followed(self, function: str, source: source_graph.SourceGraph,
                settings: settings_lib.Settings) -> outcome_lib.Outcome:
    """Makes this instance follow the plan. Runs on the placer thread."""
    assert self._course.plan is not None
    outcome = plan_lib.follow(source, settings, self._course.plan, function)
    self._course.note_placed(source, outcome, function)
    if outcome.message or self._course.comparison is not None:
      return outcome
    said = self._course.plan.describe(function)
    return dataclasses.replace(outcome, message=said)

  def _would_guard(self, plan: plan_lib.FitPlan) -> bool:
    """Whether to time steps as they were and placed.

    They are not timed if the step draws from random streams, because a second
    instance would restart the streams. They are also not timed if steps may not
    run without placement.
    """
    return (self._settings is not None and self._settings.times_steps and
            plan.changes and not plan.has_streams and plan.may_stay)

  @property
  def _is_compared(self) -> bool:
    """Whether the step is compared with the step that XLA compiles."""
    return self._xla is xla.Handling.COMPARED

  def _is_certain(self, plan: plan_lib.FitPlan) -> bool:
    """Whether the step is placed in any case: see `may_stay`, `has_decided`."""
    return not plan.may_stay or (self._settings is not None and
                                 self._settings.has_decided)

  # One method for each phase.

  def _looking_step(self, iterator: Any) -> Any:
    """Plans the step if it may leave its loop; else runs the loop."""
    is_strategy = isinstance(iterator, tf.distribute.DistributedIterator)
    if not is_strategy and not isinstance(iterator, tf.data.Iterator):
      return self._function(iterator)  # Keras made no loop for this iterator.
    if not is_strategy and single_steps.can_leave_loop(self._function,
                                                       iterator):
      self._phase = phases.Phase.PLANNING
      return self._planning_step(iterator)
    result = self._function(iterator)
    self._phase = phases.Phase.PREPARED
    return result

  def _planning_step(self, iterator: Any) -> Any:
    batches = replay.Replay(
        single_steps.batches(iterator) if self._has_loop else iterator)
    result, was_cancelled = self._canceller.run(
        lambda: self._placeable_step(batches.first()),
        at_once=self._is_compared)
    plan = self._course.plan
    if plan is not None and self._would_guard(plan):
      self._compare(plan)
    elif plan is not None and plan.changes and (
        self._is_certain(plan) if self._is_compared else was_cancelled):
      self._enter(ways.FitWay.PLACED)
      self._phase = phases.of_way(self._course.way)
    elif self._is_compared:
      self._course.give_up(ways.FitWay.XLA)
      self._phase = phases.Phase.STOCK
    else:
      if plan is not None and plan.changes:  # The first call was placed.
        self._course.enter(ways.FitWay.PLACED)
      self._phase = phases.of_way(self._course.way)
    self._release_unplaced()
    return self._step(batches.again()) if was_cancelled else result

  def _placeable_step(self, iterator: Any) -> Any:
    """Runs the steps of a call one by one."""
    data = single_steps.batches(iterator) if self._has_loop else iterator
    return self._steps.run(self._function, data)

  def _timed_step(self, iterator: Any) -> Any:
    course = self._course
    assert course.plan is not None
    is_timed = course.times(batch_sizes.size_of(iterator))
    if course.comparison is None:
      self._compare(course.plan)
    step = functools.partial(self._step, iterator, phases.of_way(course.way))
    result = course.timing.run(step) if is_timed else step()
    if course.timing.is_done:
      self._choose()
    return result

  def _choose(self) -> None:
    """Goes on to the next way to be timed, or to the way that stays."""
    course = self._course
    way = course.note(self._steps.per_call)
    self._enter(way)
    if course.is_decided and course.way is way:  # Else `_place` tells the user.
      self._phase = phases.of_way(course.way)
      notices.say(f'{self.what}: {course.describe(self._steps.per_call)}')
    self._release_unplaced()

  def _release_unplaced(self) -> None:
    """Lets other models move the variables, if the step is not placed."""
    if self._phase in (phases.Phase.STOCK, phases.Phase.PREPARED):
      variable_moves.release(self._steps.model)

  def _compare(self, plan: plan_lib.FitPlan) -> None:
    """Times the next steps, first as Keras would run them."""
    assert self._settings is not None
    self._phase = phases.Phase.TIMING
    self._enter(self._course.compare(plan, self._is_compared, self._settings))

  def _enter(self, way: ways.FitWay) -> None:
    """Makes steps run in a way, and moves variables to its devices."""
    self._course.enter(way)
    self.has_clusters = way is ways.FitWay.CLUSTERS
    if way.is_placed and not self.is_placed:
      self._place()
    elif not way.is_placed:
      self._undo()

  def _place(self) -> None:
    """Moves variables, so that the next call runs by the plan."""
    assert self._course.plan is not None
    self._origins = tuple((v, v.device) for v, _ in self._course.plan.moves)
    self.is_placed = True
    try:
      start = time.perf_counter()
      self._move(
          variable_moves.claim(self._course.plan.moves, self._steps.model))
      self._course.moved_in(time.perf_counter() - start)
      self._origins = tuple((v, d) for v, d in self._origins if v.device != d)
    except (errors.GdpError, tf.errors.OpError) as error:
      self._course.give_up(ways.stock(self._is_compared))
      self._undo()
      self._phase = phases.of_way(self._course.way)
      notices.warn_once(f'{self.what}: left as it was: its variables cannot '
                        f'be moved: {error}')

  def _undo(self) -> None:
    self.is_placed = False
    plan = self._course.plan
    planned = {id(v): device for v, device in plan.moves} if plan else {}
    # The user may have moved others by `relocate`.
    self._move((v, device) for v, device in self._origins
               if v.device == planned.get(id(v)))
    self._origins = ()

  def _move(self, devices: Iterable[tuple[Any, str]]) -> None:
    """Moves variables. After Ctrl-C the next call reads the option again."""
    try:
      variable_moves.move(devices)
    except (errors.GdpError, tf.errors.OpError):
      raise
    except BaseException:
      self._seen = keras_function.UNSEEN
      raise
