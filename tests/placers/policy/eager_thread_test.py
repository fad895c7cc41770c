import threading

import pytest
import tensorflow as tf

from gdp_grappler.placers.policy import eager_thread


def test_runs_apart_on_a_thread_that_the_program_waits_for():
  thread, apart = eager_thread.start(lambda: (threading.current_thread(
  ), eager_thread.is_current())).result(10)
  assert thread is not threading.current_thread() and not thread.daemon
  assert apart and not eager_thread.is_current()


def test_is_eager_on_the_host_even_inside_a_graph():
  with tf.Graph().as_default(), tf.device('/CPU:7'):
    eager, device = eager_thread.start(
        lambda: (tf.executing_eagerly(), tf.constant(1).device)).result(30)
  assert eager and device.endswith('CPU:0')


def test_what_a_job_raises_is_its_result():

  def fail():
    raise KeyError('x')

  with pytest.raises(KeyError):
    eager_thread.start(fail).result(10)


def test_placer_code_ends_even_if_something_is_raised():
  with pytest.raises(KeyError):
    with eager_thread.as_placer_code():
      assert eager_thread.is_current()
      raise KeyError
  assert not eager_thread.is_current()


def test_placer_code_within_placer_code_does_not_end_it():
  """The rest of a job once counted as code of the user's program."""
  with eager_thread.as_placer_code():
    with eager_thread.as_placer_code():
      pass
    assert eager_thread.is_current()
  assert not eager_thread.is_current()
