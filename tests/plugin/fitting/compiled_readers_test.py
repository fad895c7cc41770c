import gc
import types

import pytest
import tensorflow as tf

from gdp_grappler.plugin.fitting import compiled_readers
from gdp_grappler.plugin.fitting import trainers
from gdp_grappler.plugin.fitting import variable_moves


@pytest.fixture(name='variable')
def _variable():
  return tf.Variable(tf.ones(3))


def test_variables_that_are_read_or_only_written(variable):
  other = tf.Variable(0.)

  @tf.function
  def step():
    other.assign_add(1.)
    return tf.reduce_sum(variable)

  step()
  assert {id(variable.handle),
          id(other.handle)} <= compiled_readers.handles(step)


def test_a_function_within_a_function_uses_what_the_outer_one_captures(
    variable):
  inner = tf.function(lambda: tf.reduce_sum(variable))
  middle = tf.function(lambda: inner() + 1.)
  tf.function(lambda: middle() * 2.)()
  assert compiled_readers.handles(inner) == {id(variable.handle)}


def test_a_function_that_is_gone_holds_nothing(variable):
  function = tf.function(lambda: tf.reduce_sum(variable))
  function()
  compiled_readers.record(function)
  assert id(variable.handle) in compiled_readers.captured()
  del function
  gc.collect()
  assert id(variable.handle) not in compiled_readers.captured()


class _Model:
  pass


def _step(variable):
  """A traced function that looks like one of Keras."""

  def one_step_on_data():
    return tf.reduce_sum(variable)

  one_step_on_data.__module__ = 'keras.src.backend.tensorflow.trainer'
  function = tf.function(one_step_on_data)
  function()
  return function


def test_steps_of_a_model_keep_variables_from_other_models_alone(variable):
  model, other = _Model(), _Model()
  function = _step(variable)
  with compiled_readers.steps_of(model):
    with compiled_readers.steps_of(other):
      pass
    assert compiled_readers.record(function)
  assert id(variable.handle) not in compiled_readers.captured(model)
  assert id(variable.handle) in compiled_readers.captured(other)
  assert id(variable.handle) in compiled_readers.captured()


def test_a_step_that_is_only_traced_is_not_recorded(variable):
  function = _step(variable)
  assert not compiled_readers.record(function)
  assert id(variable.handle) not in compiled_readers.captured()


def test_a_function_of_the_user_within_a_step_is_the_users(variable):
  model = _Model()
  function = tf.function(lambda: tf.reduce_sum(variable))
  function()
  with compiled_readers.steps_of(model):
    assert compiled_readers.record(function)
  assert id(variable.handle) in compiled_readers.captured(model)


def test_a_model_with_layers_that_another_one_moved_runs_without_xla(
    variable, monkeypatch):
  """Once `evaluate` failed: XLA found a variable on another device."""
  model = types.SimpleNamespace(variables=[variable])
  assert not trainers._is_trained_placed(model)
  monkeypatch.setitem(variable_moves._moved, id(variable), variable)
  assert trainers._is_trained_placed(model)
