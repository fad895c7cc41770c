"""Runs the steps of a call one by one, in place of Keras' loop.

With `steps_per_execution` above 1, a call of the train function is a loop of
steps. All ops of a loop are one group, so they could not have different
devices. Keras 3 makes no loop if the batches come from Python.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any, Callable, Iterator
import weakref

import tensorflow as tf

from gdp_grappler.graph import source_graph
from gdp_grappler.graph.legality import pins
from gdp_grappler.graph.sources import captures
from gdp_grappler.plugin import current_call
from gdp_grappler.plugin import outcome as outcome_lib
from gdp_grappler.plugin import settings as settings_lib
from gdp_grappler.plugin.fitting import keras_function

# Text for the user of a call that gets its batch from Python, and not from an
# iterator of `tf.data`.
WHY_NOT_PLANNED = (
    'with steps_per_execution above 1, only fit searches for a placement. Call '
    'fit before train_on_batch, or compile with steps_per_execution=1')
# Keras 3's names of the loop and of its step.
_LOOP, _STEP = 'multi_step_on_iterator', 'one_step_on_data'


@dataclasses.dataclass
class Batches:
  """The remaining batches of an iterator of `tf.data`, for single steps.

  Attributes:
    iterator: The iterator.
    first: The first batch, as an optional. A batch whose step was cancelled
      stays the first one.
  """

  iterator: tf.data.Iterator
  first: tf.experimental.Optional

  def __iter__(self) -> Iterator[Any]:
    while self.first.has_value():
      yield tf.nest.map_structure(_without_optional, self.first.get_value())
      self.first = self.iterator.get_next_as_optional()


def _without_optional(value: Any) -> Any:
  """Returns a part of a batch; None for an Optional, as Keras does."""
  return None if isinstance(value, tf.experimental.Optional) else value


class SingleSteps:
  """The steps of a call of a model.

  Attributes:
    model: A Keras model.
  """

  def __init__(self, model: Any) -> None:
    """Keeps the model.

    Args:
      model: A Keras model.
    """
    self.model = model
    # For the trace of each loop, the trace of the step in it. A search takes
    # milliseconds.
    self._traces = weakref.WeakKeyDictionary[Any, Any]()

  @property
  def per_call(self) -> int:
    """Number of steps that the user wants in a call."""
    steps = self.model.steps_per_execution or 1
    # In tf_keras the number is a variable. `int` refuses the variable of a
    # MirroredStrategy.
    return int(steps.numpy() if hasattr(steps, 'numpy') else steps)

  @property
  def can_be_single(self) -> bool:
    """Whether there is a loop that can be avoided. False under tf_keras."""
    return self.per_call > 1 and not self.have_to_loop

  @property
  def have_to_loop(self) -> bool:
    """Whether tf_keras makes one loop of the steps of a call."""
    # With 'auto' the number begins at 1.
    is_auto = getattr(self.model, 'autotune_steps_per_execution', False)
    return (hasattr(self.model.steps_per_execution, 'assign') and
            (self.per_call > 1 or is_auto))

  def run(self, function: Callable[..., Any], data: Any) -> Any:
    """Calls a train function, or runs its steps one by one.

    A batch has a shape, but the shape in Keras' loop may be unknown. A step may
    compute something else if it knows the shape. So single steps run the trace
    that is in the loop.

    Args:
      function: The train function of Keras.
      data: `Batches` for single steps. The function gets any other data.

    Returns:
      The result of the function, or of the last step.
    """
    if not isinstance(data, Batches):
      return function(data)
    is_eager = tf.config.functions_run_eagerly()
    step = None if is_eager else self._in_loop(function, data.iterator)
    if step is None:
      return function(iter(data))
    for _, batch in zip(range(self.per_call), data):
      result = step(batch)
    return result

  def _in_loop(self, function: Callable[..., Any], iterator: Any) -> Any:
    """Returns the trace of the step in Keras' loop; None without a loop."""
    loop = _loop(function, iterator)
    if loop is None:
      return None
    if loop not in self._traces:
      traces = captures.concrete_functions(function)
      # TensorFlow's method is private. Without it Keras chooses the trace.
      calls = getattr(loop.graph, '_is_function', lambda name: False)
      self._traces[loop] = next(
          (trace
           for name, trace in traces.items() if _STEP in name and calls(name)),
          None)
    return self._traces[loop]


def can_leave_loop(function: Callable[..., Any], iterator: Any) -> bool:
  """Whether the steps of a loop may run one by one.

  They may not if they draw from streams of random numbers, because a loop and
  single steps draw different numbers. To find out, the function traces the loop
  with the step in it. Grappler does not see this trace, and nothing is taken
  from the iterator.

  Args:
    function: The train function of Keras.
    iterator: An iterator of `tf.data`.
  """
  loop = _loop(function, iterator)
  if loop is None:
    return False
  graph_def = loop.graph.as_graph_def()
  nodes = itertools.chain(graph_def.node,
                          *(f.node_def for f in graph_def.library.function))
  return not any(map(pins.draws_from_a_stream, nodes))


def _loop(function: Callable[..., Any], iterator: Any) -> Any:
  """Returns the trace of Keras' loop for an iterator; None without a loop."""
  return next((each.get_concrete_function(iterator)
               for each in captures.functions(function)
               if getattr(each.python_function, '__name__', '') == _LOOP), None)


def batches(iterator: Any) -> Any:
  """Returns the remaining batches of an iterator of `tf.data`.

  A step that finds no batch has already increased the step counter. So this
  function reads the first batch before a step begins.

  Args:
    iterator: An iterator. If it is not one of `tf.data`, it is returned.

  Raises:
    StopIteration: the iterator of `tf.data` is at its end.
  """
  if not isinstance(iterator, tf.data.Iterator):
    return iterator
  first = iterator.get_next_as_optional()
  if not first.has_value():
    raise StopIteration
  return Batches(iterator, first)


def of_a_loop(source: source_graph.SourceGraph,
              settings: settings_lib.Settings) -> outcome_lib.Outcome:
  """Leaves steps in Keras' loop, and says why they cannot leave it.

  Args:
    source: Graph of the loop, or of a step that was called by itself.
    settings: The user's option; not used.
  """
  del settings
  if not any(map(pins.draws_from_a_stream, source.graph_def.node)):
    return outcome_lib.Outcome(None, '')
  return outcome_lib.Outcome(
      None, f'{source.name}: left as it was: it has stateful random ops, which '
      'would draw other numbers if the steps of a call (steps_per_execution) '
      'ran one by one')


class LoopFunction(keras_function.KerasFunction):
  """A train function whose steps are one loop, which stays as it was."""

  def task(self, query: Any) -> current_call.Optimize | None:
    """Leaves the loop alone, and says that its ops cannot be placed."""
    del query
    return self._stays

  def _stays(self, source: source_graph.SourceGraph,
             settings: settings_lib.Settings) -> outcome_lib.Outcome:
    asked = ', and its plan does not apply' if settings.plan else ''
    return outcome_lib.Outcome(
        None, f'{source.name}: stays as it was{asked}: tf_keras makes one loop '
        'of the steps of a call (steps_per_execution), and a loop is on one '
        'device. Compile with steps_per_execution=1')
