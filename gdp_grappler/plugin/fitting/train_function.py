"""The train function of Keras, planned in its first call.

In the first call the pass sees the step and has it planned with all variables
free. Then the variables move, and the next instantiation of the function, which
TensorFlow makes because they are on other devices, follows the plan. Either the
first call is cancelled before anything of it runs, or, under the guard, the
first steps run as they were, and then placed, and the faster way stays.

Where Keras has the step compiled by XLA, another function is made that is not.
Its first call is planned and always cancelled; what the user gets from that
call is computed by XLA. What may be faster is timed after that (`ways`).

Where Keras puts several steps into a call, they are planned and placed one by
one; while they are not placed, the loop that Keras made of them runs.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from typing import Any, Callable, TYPE_CHECKING

import tensorflow as tf

from gdp_grappler import errors
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.legality import pins
from gdp_grappler.graph.sources import captures
from gdp_grappler.plugin import devices
from gdp_grappler.plugin import network
from gdp_grappler.plugin import notices
from gdp_grappler.plugin import outcome as outcome_lib
from gdp_grappler.plugin import running
from gdp_grappler.plugin import settings as settings_lib
from gdp_grappler.plugin import xla
from gdp_grappler.plugin.fitting import asked_weights
from gdp_grappler.plugin.fitting import calibration_notice
from gdp_grappler.plugin.fitting import cancelling
from gdp_grappler.plugin.fitting import course as course_lib
from gdp_grappler.plugin.fitting import keras_function
from gdp_grappler.plugin.fitting import network_timing
from gdp_grappler.plugin.fitting import plan as plan_lib
from gdp_grappler.plugin.fitting import relocation
from gdp_grappler.plugin.fitting import replay
from gdp_grappler.plugin.fitting import single_steps
from gdp_grappler.plugin.fitting import ways

if TYPE_CHECKING:
  from tensorflow.python.eager import cancellation

  from gdp_grappler.plugin import library


class TrainFunction(keras_function.KerasFunction):
  """Plans, moves variables, and keeps what is faster."""

  def __init__(self, function: Callable[..., Any], what: str, eager: bool,
               steps: single_steps.SingleSteps,
               make_placeable: Callable[[], Any] | None = None) -> None:
    """Wraps a function.

    Args:
      function: Of Keras.
      what: For users, such as 'fit of "sequential"'.
      eager: Whether it runs op by op.
      steps: Of its calls.
      make_placeable: As `KerasFunction` wants it.
    """
    super().__init__(function, what, eager, make_placeable)
    self._steps = steps
    # Whether Keras has put steps into a loop, and it can be avoided.
    self._has_loop = False
    self._can_be_single = False
    # By option: TensorFlow shows a graph once for each.
    self._courses: dict[settings_lib.Settings, course_lib.Course] = {}
    self._course = course_lib.Course()
    # What the placer thread made, before it is known whether it is in time.
    self._pending: plan_lib.Plan | None = None
    self._origins: tuple[tuple[Any, str], ...] = ()
    self._call: cancellation.CancellationManager | None = None
    self._step: Callable[[Any], Any] = self._planning_step

  def report(self) -> course_lib.Report:
    """What became of it so far."""
    if self._settings is None:
      stock = ways.Way.XLA if self.is_compiled_by_keras else ways.Way.AS_IT_WAS
      return course_lib.Report({}, way=stock.value)
    return self._course.report(len(self._origins))

  def take_over(self, other: TrainFunction) -> None:
    """Goes on by the plan of a function that was made for the same model.

    Nothing has to be planned, moved or timed again, unless the other one has
    not got that far.
    """
    if other._course.plan is None or other._step not in (other._function,
                                                         other._stock,
                                                         other._placeable_step):
      other.retire()
      return
    self._courses, self._course = other._courses, other._course
    self._origins = other._origins
    self._settings, self._seen = other._settings, other._seen
    self._batch_size = other._batch_size
    self.is_placed, self.has_clusters = other.is_placed, other.has_clusters
    self._has_loop = other._has_loop
    self._choose_function()
    self._step = self._step_of(self._course.way)

  def is_of(self, model: Any) -> bool:
    """Whether it trains this very model."""
    return self._steps.model is model

  def retire(self) -> None:
    """Its variables go back; another step is made for the same model.

    What that one is planned and timed from is what TensorFlow did, not what
    this one had made of it.
    """
    self._undo()

  def _run(self, *args: Any) -> Any:
    return self._step(*args)

  def _why_xla_stays(self) -> str:
    if self._xla is xla.Handling.KEPT:
      return super()._why_xla_stays()
    return (f'; its graph has fewer than {self._minimum()} ops, or was not '
            'planned in time')

  def _explain(self) -> None:
    course = self._course
    said = '' if course.plan is None else course.plan.describe()
    if course.stays and course.comparison is not None:
      self.was_told = True
      notices.say(f'{self._what}: {course.comparison.in_short()}')
      return
    if course.way is ways.Way.XLA and not said:
      super()._explain()
      return
    if (course.plan is None or not said or
        course.plan.changes and not self.is_placed):
      super()._explain()
      return
    # Nothing was instantiated: it runs as it did before it was switched off.
    self.was_told = True
    notices.say(f'{running.named(said, self)}; as before')

  def _switch(self, settings: settings_lib.Settings | None) -> None:
    super()._switch(settings)
    self._undo()
    if settings is None:
      return
    if network.is_own(settings.cluster):
      network_timing.time_once()
      calibration_notice.tell_once()
    self._has_loop = (self._steps.can_be_single and len(devices.names()) > 1 and
                      not self._eager and
                      not captures.is_compiled(self._function) and
                      not devices.steps_stay(settings))
    course = self._courses.setdefault(settings, course_lib.Course())
    changed = course is not self._course
    self._course = course
    if self._xla is xla.Handling.KEPT:
      course.give_up(ways.Way.XLA)
      self._step = self._stock
    elif course.plan is None:
      looks = self._has_loop and not self._is_compared
      self._step = self._looking_step if looks else self._planning_step
    elif course.is_decided:
      self._enter(course.way)
      self._step = self._step_of(course.way)
    elif course.comparison is not None:
      self._compare(course.plan)
    elif course.plan.changes:
      self._enter(ways.Way.PLACED)
      self._step = self._step_of(course.way)
    elif changed:
      self._step = self._function

  # What the pass is told.

  def task(self, query: library.Query) -> running.Optimize | None:
    """Plans the step, follows the plan, or leaves it alone."""
    concrete = captures.concrete_functions(self._function).get(query.graph_id)
    if concrete is None:
      return None
    self._pending = None
    if self._step == self._looking_step:
      return self._looked_at
    if self._step == self._planning_step and self._course.plan is None:
      if self._has_loop:
        self._cancel()
      return functools.partial(self._planned, query.graph_id, concrete)
    if self._course.plan is None:
      return None
    if self.is_placed:
      return functools.partial(self._followed, query.graph_id)
    waits = self._course.stays or self._would_guard(self._course.plan)
    return (outcome_lib.leave_alone
            if self._has_loop or self._course.plan.changes and waits else None)

  def _looked_at(self, source: source_graph.SourceGraph,
                 settings: settings_lib.Settings) -> outcome_lib.Outcome:
    """On the placer thread: whether steps of a loop can be done one by one."""
    del settings
    streams = any(map(pins.draws_from_a_stream, source.graph_def.node))
    self._can_be_single = not streams
    return _of_a_loop(source.name) if streams else outcome_lib.Outcome(None, '')

  def _planned(self, function: str, concrete: Any,
               source: source_graph.SourceGraph,
               settings: settings_lib.Settings) -> outcome_lib.Outcome:
    """On the placer thread."""
    received = captures.variables(concrete) if settings.move_variables else {}
    asked = asked_weights.of(received, source, settings)
    free = {
        id(v) for v in relocation.movable(
            [v
             for i, v in received.items() if i not in asked], self._steps.model)
    }
    plan = plan_lib.make(source, settings,
                         {i: v for i, v in received.items() if id(v) in free},
                         function, asked)
    self._pending = plan
    if self._would_guard(plan):
      ran = 'with XLA' if self._is_compared else 'as they were'
      return outcome_lib.Outcome(
          None, f'{plan.describe()}; the first steps run {ran}, to compare')
    if self._is_compared:
      return outcome_lib.Outcome(
          None, course_lib.of_kept_xla(plan, self._what, self._is_asked_for))
    waits = plan.moves or self._has_loop and plan.changes
    return outcome_lib.Outcome(None, '') if waits else plan.outcome

  def decided(self) -> None:
    """Takes the plan that came in time, and keeps the step from running."""
    if self._step == self._looking_step and self._can_be_single:
      self._cancel()
    if self._pending is None:
      return
    self._course.plan, self._pending = self._pending, None
    if self._course.plan.moves and not self._would_guard(self._course.plan):
      self._cancel()

  def _cancel(self) -> None:
    """Nothing of the call is going to run."""
    if self._call is not None:
      self._call.start_cancel()

  def _followed(self, function: str, source: source_graph.SourceGraph,
                settings: settings_lib.Settings) -> outcome_lib.Outcome:
    """On the placer thread."""
    assert self._course.plan is not None
    outcome = plan_lib.follow(source, settings, self._course.plan, function)
    if outcome.message or self._course.comparison is not None:
      return outcome
    return dataclasses.replace(outcome, message=self._course.plan.describe())

  def _would_guard(self, plan: plan_lib.Plan) -> bool:
    """Whether to time steps.

    Not if it changed numbers: streams of random numbers would begin anew. Nor
    where steps as they were would run out of memory.
    """
    return (self._settings is not None and self._settings.times_steps and
            plan.changes and not plan.has_streams and plan.outcome.fitted)

  @property
  def _is_compared(self) -> bool:
    """Whether the step as Keras would run it is the one with XLA."""
    return self._xla is xla.Handling.COMPARED

  @property
  def _is_asked_for(self) -> bool:
    """Whether the user wants the step placed in any case."""
    return self._settings is not None and self._settings.has_decided

  # The phases of its life.

  def _looking_step(self, iterator: Any) -> Any:
    """Nothing is taken from the iterator before the loop may be left."""
    if not isinstance(iterator, tf.data.Iterator):
      return self._function(iterator)  # Without a loop; one may come yet.
    result, was_cancelled = self._cancellable(iterator)
    self._step = self._planning_step if was_cancelled else self._function
    return self._planning_step(iterator) if was_cancelled else result

  def _cancellable(self, iterator: Any,
                   at_once: bool = False) -> tuple[Any, bool]:
    """The result of the function, and whether it was cancelled instead.

    Cancelled at once it is instantiated, which has it planned, and ends.
    """
    with cancelling.cancellable() as call:
      self._call = call
      if at_once:
        self._cancel()
      try:
        return self._function(iterator), False
      except tf.errors.CancelledError:
        if not call.is_cancelled:
          raise
        return None, True
      finally:
        self._call = None

  def _planning_step(self, iterator: Any) -> Any:
    batches = replay.Replay(
        single_steps.batches(iterator) if self._has_loop else iterator)
    result, was_cancelled = self._cancellable(batches.first(),
                                              self._is_compared)
    plan = self._course.plan
    follows = self._is_asked_for if self._is_compared else was_cancelled
    if plan is not None and self._would_guard(plan):
      self._compare(plan)
    elif plan is not None and plan.changes and follows:
      self._enter(ways.Way.PLACED)
      self._step = self._step_of(self._course.way)
    elif self._is_compared:
      self._course.give_up(ways.Way.XLA)
      self._step = self._stock
    else:
      # Steps one by one that nobody asked about go on as they began.
      self._step = self._function if was_cancelled else self._placeable_step
    return self._step(batches.again()) if was_cancelled else result

  def _placeable_step(self, iterator: Any) -> Any:
    """Without a loop."""
    return self._function(
        single_steps.batches(iterator) if self._has_loop else iterator)

  def _timed_step(self, iterator: Any) -> Any:
    course = self._course
    step = self._step_of(course.way)
    result = course.timing.run(lambda: step(iterator))
    if course.timing.is_done:
      self._choose()
    return result

  def _choose(self) -> None:
    """Goes on to the next way to be timed, or to what stays."""
    course = self._course
    way = course.note(self._steps.per_call)
    is_decided = course.is_decided
    self._enter(way)
    if is_decided:
      self._step = self._step_of(course.way)
      notices.say(f'{self._what}: {course.describe(self._steps.per_call)}')

  def _compare(self, plan: plan_lib.Plan) -> None:
    """The next steps are timed, the first of them as Keras would run them."""
    assert self._settings is not None
    self._step = self._timed_step
    self._enter(self._course.compare(plan, self._is_compared, self._settings))

  def _enter(self, way: ways.Way) -> None:
    """Steps run this way from now on, with their variables where it wants."""
    self._course.enter(way)
    self.has_clusters = way is ways.Way.CLUSTERS
    if way.is_placed and not self.is_placed:
      self._place()
    elif not way.is_placed:
      self._undo()

  def _step_of(self, way: ways.Way) -> Callable[[Any], Any]:
    if way.is_placed:
      return self._placeable_step
    return self._stock if way is ways.Way.XLA else self._function

  def _place(self) -> None:
    """From the next call on the step runs by its plan."""
    assert self._course.plan is not None
    self._origins = tuple((v, v.device) for v, _ in self._course.plan.moves)
    self.is_placed = True
    try:
      start = time.perf_counter()
      relocation.move(self._course.plan.moves)
      self._course.moved_in(time.perf_counter() - start)
      self._origins = tuple((v, d) for v, d in self._origins if v.device != d)
    except (errors.GdpError, tf.errors.OpError) as error:
      self._course.give_up(ways.Way.AS_IT_WAS if self._xla is
                           None else ways.Way.XLA)
      self._undo()
      self._step = self._step_of(self._course.way)
      notices.warn_once(f'{self._what}: left as it was: its variables cannot '
                        f'be moved: {error}')

  def _undo(self) -> None:
    self.is_placed = False
    relocation.move(self._origins)
    self._origins = ()


def _of_a_loop(name: str) -> outcome_lib.Outcome:
  """Decides that steps stay in the loop that Keras made of them."""
  return outcome_lib.Outcome(
      None, f'{name}: left as it was: it draws random numbers from streams, '
      'and those of several steps (steps_per_execution) are not those of one')
