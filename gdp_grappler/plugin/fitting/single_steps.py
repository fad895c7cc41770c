"""The steps of a call one by one, where Keras would put them into a loop.

With `steps_per_execution` above 1 a call of the train function is a loop of
steps. A loop is one group, so nothing inside could be placed. Keras 3 makes no
loop if the batches come from Python.
"""

from __future__ import annotations

import itertools
from typing import Any, Callable, Iterator

import tensorflow as tf

from gdp_grappler.graph import source_graph
from gdp_grappler.graph.legality import pins
from gdp_grappler.graph.sources import captures
from gdp_grappler.plugin import current_call
from gdp_grappler.plugin import outcome as outcome_lib
from gdp_grappler.plugin import settings as settings_lib
from gdp_grappler.plugin.fitting import keras_function

# What Keras 3 calls the loop.
_LOOP = 'multi_step_on_iterator'


class SingleSteps:
  """Tells how a model does the steps of a call.

  Attributes:
    model: Of Keras.
  """

  def __init__(self, model: Any) -> None:
    """Does nothing yet.

    Args:
      model: Of Keras.
    """
    self.model = model

  @property
  def per_call(self) -> int:
    """Steps that are wanted in a call."""
    return int(self.model.steps_per_execution or 1)

  @property
  def can_be_single(self) -> bool:
    """Whether there is a loop that can be avoided; not under tf_keras."""
    return self.per_call > 1 and not self.have_to_loop

  @property
  def have_to_loop(self) -> bool:
    """Whether tf_keras makes one loop of the steps of a call."""
    return (not isinstance(self.model.steps_per_execution, int) and
            self.per_call > 1)


def can_leave_loop(function: Callable[..., Any], iterator: Any) -> bool:
  """Whether the steps of a loop may run one by one.

  Not if they draw random numbers from streams: those of several steps are not
  those of one. The loop is traced for this, with the step in it. Grappler does
  not see it, and nothing is taken from the iterator.

  Args:
    function: Of Keras.
    iterator: Of `tf.data`.
  """
  loop = next((each for each in captures.functions(function)
               if getattr(each.python_function, '__name__', '') == _LOOP), None)
  if loop is None:
    return False
  graph_def = loop.get_concrete_function(iterator).graph.as_graph_def()
  nodes = itertools.chain(graph_def.node,
                          *(f.node_def for f in graph_def.library.function))
  return not any(map(pins.draws_from_a_stream, nodes))


def batches(iterator: Any) -> Iterator[Any]:
  """What an iterator has left, for Python.

  A step that finds out by itself that there is none would have counted itself
  by then.

  Args:
    iterator: Of `tf.data` or already of Python.

  Raises:
    StopIteration: there is nothing, of `tf.data`.
  """
  if not isinstance(iterator, tf.data.Iterator):
    return iterator
  first = iterator.get_next_as_optional()
  if not first.has_value():
    raise StopIteration
  return _from(first, iterator)


def _from(batch: Any, iterator: Any) -> Iterator[Any]:
  while batch.has_value():
    yield batch.get_value()
    batch = iterator.get_next_as_optional()


def of_a_loop(name: str) -> outcome_lib.Outcome:
  """Decides that steps stay in the loop that Keras made of them."""
  return outcome_lib.Outcome(
      None, f'{name}: left as it was: it draws random numbers from streams, '
      'and those of several steps (steps_per_execution) are not those of one')


class LoopFunction(keras_function.KerasFunction):
  """A train function whose steps are one loop, which stays as it is."""

  def task(self, query: Any) -> current_call.Optimize | None:
    """Leaves the loop alone and says so: inside it, nothing can be placed."""
    del query
    return self._stays

  def _stays(self, source: source_graph.SourceGraph,
             settings: settings_lib.Settings) -> outcome_lib.Outcome:
    asked = ', and its plan does not apply' if settings.plan else ''
    return outcome_lib.Outcome(
        None, f'{source.name}: stays as it was{asked}: tf_keras makes one loop '
        'of the steps of a call (steps_per_execution), and a loop is on one '
        'device. Compile with steps_per_execution=1')
