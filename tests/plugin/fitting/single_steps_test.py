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
  """Once the loop was planned as a single step, because it begins with one."""
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
  """Once the line said that the plan had placed the ops of the loop."""
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
  """A loop of steps, with the names of functions of Keras."""

  @tf.function(reduce_retracing=True)
  def one_step_on_data(data):
    return step(data)

  @tf.function
  def multi_step_on_iterator(iterator):
    for _ in tf.range(2):
      one_step_on_data(next(iterator))

  def function(iterator):
    if isinstance(iterator, tf.data.Iterator):
      return multi_step_on_iterator(iterator)
    return [one_step_on_data(batch) for _, batch in zip(range(2), iterator)][-1]

  return function


def _steps():
  return single_steps.SingleSteps(types.SimpleNamespace(steps_per_execution=2))


def _with_noise(x):
  return x + tf.random.normal(tf.shape(x))


@pytest.mark.parametrize('step, can_leave', [(_with_noise, False),
                                             (tf.square, True)])
def test_steps_that_draw_from_streams_stay_in_their_loop(step, can_leave):
  iterator = iter(tf.data.Dataset.from_tensor_slices([1., 2.]))
  function = _looping(step)
  assert single_steps.can_leave_loop(function, iterator) == can_leave
  assert float(next(iterator)) == 1.  # The iterator still has its first batch.


def test_what_is_no_loop_of_keras_is_not_left():
  iterator = iter(tf.data.Dataset.range(2))
  assert not single_steps.can_leave_loop(tf.function(tf.square), iterator)


def test_a_step_that_was_looked_at_in_its_loop_is_not_traced_again():
  """Once a call of the loop was begun and cancelled to trace the step."""
  traces = []

  def step(x):
    traces.append(x)
    return x * x

  function = _looping(step)
  iterator = iter(tf.data.Dataset.from_tensor_slices([1., 2.]))
  assert single_steps.can_leave_loop(function, iterator)
  _steps().run(function, single_steps.batches(iterator))
  assert len(traces) == 1


def _static_size(x):
  return tf.constant(-1 if x.shape[0] is None else x.shape[0])


def test_a_single_step_knows_the_shape_that_its_loop_knows():
  """Once a step ran the trace of a fixed batch size, so losses changed."""
  data, steps = tf.data.Dataset.range(8), _steps()
  function = _looping(_static_size)
  for drop_remainder, size in ((True, 2), (False, -1), (True, 2)):
    iterator = iter(data.batch(2, drop_remainder))
    assert steps.run(function, single_steps.batches(iterator)) == size
    assert next(iterator).numpy().tolist() == [4, 5]


def test_steps_run_without_the_method_that_knows_the_trace(monkeypatch):
  """TensorFlow may remove the private method."""
  data = iter(tf.data.Dataset.range(4))
  function = _looping(tf.square)
  function(iter([tf.constant(3), tf.constant(3)]))

  class Loop:
    graph = None

  monkeypatch.setattr(single_steps, '_loop', lambda *unused_args: Loop)
  assert _steps().run(function, single_steps.batches(data)) == 1


def test_single_steps_run_op_by_op_if_the_user_wants_it():
  sizes = []
  function = _looping(lambda x: sizes.append(x.shape[0]) or x)
  iterator = iter(tf.data.Dataset.range(4).batch(2))
  tf.config.run_functions_eagerly(True)
  try:
    _steps().run(function, single_steps.batches(iterator))
  finally:
    tf.config.run_functions_eagerly(False)
  assert sizes == [2, 2]


def test_what_is_missing_in_a_batch_is_none():
  """For example, Keras passes None for sample weights that are missing."""
  empty = tf.experimental.Optional.empty(tf.TensorSpec([2]))
  data = tf.data.Dataset.from_tensors((1., empty))
  (_, missing), = single_steps.batches(iter(data))
  assert missing is None


def test_the_batch_of_a_step_that_was_cancelled_comes_again():
  batches = single_steps.batches(iter(tf.data.Dataset.range(3)))
  assert [int(x) for _, x in zip(range(2), batches)] == [0, 1]
  assert [int(x) for x in batches] == [1, 2]


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
