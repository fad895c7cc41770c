import types

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from gdp_grappler.graph import source_graph
from gdp_grappler.plugin import settings as settings_lib
from gdp_grappler.plugin.fitting import single_steps
from helpers import strategies


@pytest.mark.parametrize('steps, per_call, can_be_single', [
    (1, 1, False),
    (3, 3, True),
    (np.int64(3), 3, True),
    (None, 1, False),
])
def test_steps_of_a_call(steps, per_call, can_be_single):
  model = types.SimpleNamespace(steps_per_execution=steps)
  found = single_steps.SingleSteps(model)
  assert found.per_call == per_call
  assert found.can_be_single == can_be_single


def test_loops_of_tf_keras_are_left_alone():
  model = types.SimpleNamespace(steps_per_execution=tf.Variable(4))
  found = single_steps.SingleSteps(model)
  assert found.per_call == 4
  assert not found.can_be_single


def test_a_loop_of_tf_keras_whose_length_is_tuned_is_a_loop():
  """It was planned as if each call were one step, as it begins with one."""
  model = tf_keras.Sequential([tf_keras.layers.Dense(1)])
  model.compile('sgd', 'mse', steps_per_execution='auto')
  found = single_steps.SingleSteps(model)
  assert found.per_call == 1
  assert found.have_to_loop and not found.can_be_single


def test_steps_of_a_strategy_with_one_replica():
  """Once `fit` failed: `int` refuses the variables of such a strategy."""
  with strategies.made(
      lambda: tf.distribute.MirroredStrategy(['/cpu:0'])) as strategy:
    with strategy.scope():
      steps = tf.Variable(1)
  found = single_steps.SingleSteps(
      types.SimpleNamespace(steps_per_execution=steps))
  assert found.per_call == 1
  assert not found.have_to_loop


def test_a_loop_that_stays_says_so_and_that_its_plan_does_not_apply():
  """Once the line said that the plan had placed 334 ops."""
  function = single_steps.LoopFunction(lambda: None, 'fit of "net"', False,
                                       None, lambda: False)
  decide = function.task(None)
  source = source_graph.SourceGraph('fit of "net"', tf.compat.v1.GraphDef())
  for settings, said in ((settings_lib.Settings(), 'stays as it was: tf_keras'),
                         (settings_lib.Settings(plan=(('a', 'CPU:1'),)),
                          'its plan does not apply')):
    outcome = decide(source, settings)
    assert said in outcome.message and 'steps_per_execution' in outcome.message
    assert outcome.devices is None


def _looping(step):
  """Steps as Keras puts them into a loop."""
  one_step = tf.function(step)

  @tf.function
  def multi_step_on_iterator(iterator):
    for _ in tf.range(2):
      one_step(next(iterator))

  def function(iterator):
    if isinstance(iterator, tf.data.Iterator):
      multi_step_on_iterator(iterator)
    else:
      one_step(next(iterator))

  return function


def _with_noise(x):
  return x + tf.random.normal(tf.shape(x))


@pytest.mark.parametrize('step, can_leave', [(_with_noise, False),
                                             (tf.square, True)])
def test_steps_that_draw_from_streams_stay_in_their_loop(step, can_leave):
  iterator = iter(tf.data.Dataset.from_tensor_slices([1., 2.]))
  function = _looping(step)
  assert single_steps.can_leave_loop(function, iterator) == can_leave
  assert float(next(iterator)) == 1.  # Nothing was taken.


def test_what_is_no_loop_of_keras_is_not_left():
  iterator = iter(tf.data.Dataset.range(2))
  assert not single_steps.can_leave_loop(tf.function(tf.square), iterator)


def test_a_step_that_was_looked_at_in_its_loop_is_not_traced_again():
  """A call of the loop was begun and cancelled for it, past Grappler."""
  traces = []

  def step(x):
    traces.append(x)
    return x * x

  function = _looping(step)
  iterator = iter(tf.data.Dataset.from_tensor_slices([1., 2.]))
  assert single_steps.can_leave_loop(function, iterator)
  function(single_steps.batches(iterator))
  assert len(traces) == 1


def test_batches_come_to_python():
  iterator = iter(tf.data.Dataset.range(5).batch(2))
  found = single_steps.batches(iterator)
  assert [batch.numpy().tolist() for batch in found] == [[0, 1], [2, 3], [4]]
  with pytest.raises(StopIteration):
    single_steps.batches(iterator)


def test_no_more_is_taken_than_is_asked_for():
  iterator = iter(tf.data.Dataset.range(5))
  taken = [int(x) for _, x in zip(range(2), single_steps.batches(iterator))]
  assert taken == [0, 1]
  assert int(next(iterator)) == 2


def test_iterators_of_python_are_handed_on():
  iterator = iter([])
  assert single_steps.batches(iterator) is iterator
