import threading

import pytest
import tensorflow as tf
from tensorflow.python.eager import cancellation
from tensorflow.python.eager import context

from gdp_grappler.plugin.fitting import cancelling


@tf.function
def _add(x):
  return x + 1.


def test_a_call_ends_when_it_is_told_to():
  with cancelling.cancellable() as call:
    assert _add(tf.constant(1.)).numpy() == 2.
    call.start_cancel()
    with pytest.raises(tf.errors.CancelledError):
      _add(tf.constant(1.))
  assert _add(tf.constant(1.)).numpy() == 2.


def test_the_manager_outlives_what_runs_later(monkeypatch):
  """Once a fit within the scope of another host crashed."""
  found = []
  monkeypatch.setattr(context, 'async_wait',
                      lambda: found.append(cancellation.context()))
  with cancelling.cancellable() as call:
    _add(tf.constant(1.))
  assert found == [call]


def test_other_threads_go_on():
  results = []
  with cancelling.cancellable() as call:
    call.start_cancel()
    other = threading.Thread(
        target=lambda: results.append(_add(tf.constant(1.)).numpy()))
    other.start()
    other.join()
  assert results == [2.]


def test_calls_within_calls_have_their_own():
  with cancelling.cancellable() as outer:
    with cancelling.cancellable() as inner:
      inner.start_cancel()
    assert cancellation.context() is outer
    assert _add(tf.constant(1.)).numpy() == 2.


def test_what_the_user_can_cancel_stays_so():
  own = cancellation.CancellationManager()
  with cancellation.CancellationManagerContext(own):
    with cancelling.cancellable() as call:
      assert cancellation.context() is call
    assert cancellation.context() is own
  assert cancellation.context() is None


def test_variables_of_a_first_call_that_is_cancelled_have_values():
  """Once slots of an optimizer had no values, and the next step failed."""
  made = []

  @tf.function
  def step():
    if not made:
      made.append(tf.Variable(3.))
    return made[0] + 1.

  with pytest.raises(tf.errors.CancelledError):
    with cancelling.cancellable() as call:
      call.start_cancel()
      step()
  assert made[0].numpy() == 3


@pytest.mark.parametrize('at_once', [False, True])
def test_a_running_call_is_cancelled_and_this_is_returned(at_once):
  canceller = cancelling.Canceller()
  canceller.cancel()  # No effect, because nothing runs.
  result, was_cancelled = canceller.run(lambda: _add(tf.constant(1.)), at_once)
  assert was_cancelled == at_once
  assert was_cancelled or result.numpy() == 2.


def test_a_call_that_something_else_cancelled_fails():

  def fail():
    raise tf.errors.CancelledError(None, None, 'The queue was closed.')

  with pytest.raises(tf.errors.CancelledError):
    cancelling.Canceller().run(fail)
