import threading

import pytest
import tensorflow as tf
from tensorflow.python.eager import context

from gdp_grappler.graph.sources import execution


@pytest.mark.parametrize('mode', [context.SYNC, context.ASYNC])
def test_this_thread_runs_functions_and_the_program_keeps_its_mode(mode):
  ran = []

  def note(value):
    ran.append(threading.current_thread())
    return value

  with context.execution_mode(mode):
    with execution.synchronously():
      assert not context.context().is_async()
      tf.py_function(note, [tf.zeros(1)], tf.float32)
    assert context.context().is_async() == (mode == context.ASYNC)
  assert ran == [threading.current_thread()]
