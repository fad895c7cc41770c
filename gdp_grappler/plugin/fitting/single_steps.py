"""The steps of a call one by one, where Keras would put them into a loop.

With `steps_per_execution` above 1 a call of the train function is a loop of
steps. A loop is one group, so nothing inside could be placed. Keras 3 makes no
loop if the batches come from Python.
"""

from __future__ import annotations

from typing import Any, Iterator

import tensorflow as tf

from gdp_grappler.plugin import outcome as outcome_lib


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
    return (isinstance(self.model.steps_per_execution, int) and
            self.per_call > 1)


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
