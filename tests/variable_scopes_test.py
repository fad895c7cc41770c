"""Scopes of variables; `tests/e2e/asked_test` has those of a program."""

import types

import keras
import pytest
import tensorflow as tf
import tf_keras

from gdp_grappler import variable_scopes

_HERE = '/job:localhost/replica:0/task:0/device:CPU:0'


@pytest.fixture(autouse=True)
def watched():
  variable_scopes.watch()


def test_scope_is_noted():
  with tf.device('/CPU:0'):
    asked = tf.Variable(1.)
  assert variable_scopes.device(asked) == _HERE
  assert variable_scopes.device(tf.Variable(1.)) == ''


def test_scope_of_a_device_that_is_missing_is_noted():
  with tf.device('/GPU:5'):
    asked = tf.Variable(1.)
  assert variable_scopes.device(asked).endswith('GPU:5')


def test_scopes_that_are_not_the_programs_are_left_out():
  with variable_scopes.unnoted(), tf.device('/CPU:0'):
    unasked = tf.Variable(1.)
  with tf.distribute.get_strategy().extended.colocate_vars_with(unasked):
    slot = tf.Variable(1.)
  assert variable_scopes.device(unasked) == variable_scopes.device(slot) == ''


def test_scope_of_another_host_alone_asks_for_none_of_its_devices():
  variable = tf.Variable(1.)
  variable._gdp_scope = '/job:worker/replica:0/task:0/device:CPU:0'
  assert variable_scopes.device(variable) == ''
  variable._gdp_scope = '/job:worker/replica:0/task:0/device:CPU:1'
  assert variable_scopes.device(variable)


@pytest.mark.parametrize('library, path', [(keras, 'words/embeddings'),
                                           (tf_keras, '')])
def test_a_variable_of_keras_3_knows_its_layer(library, path):
  layer = library.layers.Embedding(3, 2, name='words')
  layer.build((None, 4))
  variable, = layer.weights
  variable = getattr(variable, 'value', variable)
  assert variable_scopes.path(variable) == path
  assert variable_scopes.path(tf.Variable(1.)) == ''


def test_a_keras_with_other_private_names_is_left_alone():

  class Variable:
    pass

  before = dict(vars(Variable))
  for module in types.SimpleNamespace(), types.SimpleNamespace(
      Variable=Variable):
    variable_scopes._wrap_keras('Variable', module)
  assert dict(vars(Variable)) == before
