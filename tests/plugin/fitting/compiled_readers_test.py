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


def test_a_model_with_layers_that_another_one_moved_runs_without_xla(
    variable, monkeypatch):
  """Once XLA, which Keras chose for `evaluate`, failed on the other device."""
  model = types.SimpleNamespace(variables=[variable])
  assert not trainers._is_trained_placed(model)
  monkeypatch.setitem(variable_moves._moved, id(variable), variable)
  assert trainers._is_trained_placed(model)
