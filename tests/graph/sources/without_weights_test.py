"""Tests of `without_weights`: models that are far larger than any memory."""

import keras
import pytest
import tensorflow as tf
import tf_keras

from gdp_grappler import errors
from gdp_grappler.graph.sources import tracing_worker
from gdp_grappler.graph.sources import without_weights
from helpers import fresh

_PROGRAM = """
import resource
import keras
import gdp_grappler

def make():
  model = keras.Sequential([
      keras.Input((16,), dtype='int32'),
      keras.layers.Embedding(26_000_000, 1024, name='words'),
      keras.layers.GlobalAveragePooling1D(),
      keras.layers.Dense(16, name='top')])
  model.compile('sgd', 'mse')
  return model

before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
plan = gdp_grappler.place(make, '1xP100', plan={'words': 'CPU:0'})
words, = [row for row in plan.layers if row.name == 'words']
assert words.parameter_bytes == 26_000_000 * 1024 * 4
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
assert grown < 1e6, f'{grown} kB more'
print(words.device)
"""


def test_weights_have_shapes_and_no_values():
  with without_weights.without_weights():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    model.compile('adam', 'mse')
  without_weights.complete(model)
  assert without_weights.has_none(model.optimizer.variables)
  assert [tuple(v.shape) for v in model.weights] == [(4, 2), (2,)]
  assert without_weights.has_none(model.weights)
  assert not model.weights[0].numpy().size
  # What is given as a value is there.
  assert model.optimizer.iterations.numpy() == 0


@pytest.mark.parametrize(
    'optimizer', [tf_keras.optimizers.Adam, tf_keras.optimizers.legacy.Adam])
def test_slots_of_tf_keras_have_no_values(optimizer):
  """Legacy optimizers have no `build`, and their models could not be placed."""
  with without_weights.without_weights():
    model = tf_keras.Sequential([tf_keras.layers.Dense(2, input_shape=(4,))])
    model.compile(optimizer(), 'mse')
  without_weights.complete(model)
  variables = model.optimizer.variables
  variables = variables() if callable(variables) else variables
  slots = [v for v in variables if tuple(v.shape) == (4, 2)]
  assert len(slots) == 2
  assert all(without_weights.has_none([slot]) for slot in slots)


def test_an_optimizer_of_tensorflow_1_makes_its_slots_in_the_step():
  with without_weights.without_weights():
    model = tf_keras.Sequential([tf_keras.layers.Dense(2, input_shape=(4,))])
    model.compile(tf.compat.v1.train.AdamOptimizer(), 'mse')
  without_weights.complete(model)
  assert without_weights.has_none(model.weights)


def test_a_model_with_a_part_that_was_not_called_stays_as_it_is():
  """Keras' error about weights that are not yet created ended the plan."""

  class Own(tf_keras.Model):

    def __init__(self):
      super().__init__()
      self.inside = tf_keras.Sequential([tf_keras.layers.Dense(2)])

    def call(self, inputs):
      return self.inside(inputs)

  model = Own()
  model.compile('adam', 'mse')
  without_weights.complete(model)
  assert not model.built


@pytest.mark.parametrize('library', [keras, tf_keras])
def test_a_model_that_does_not_know_its_inputs_is_built(library):

  class Own(library.Model):

    def __init__(self):
      super().__init__()
      self.top = library.layers.Dense(2)

    def call(self, inputs):
      return self.top(inputs[0])

  model = Own()
  without_weights.build(model, (tf.TensorSpec((3, 4)),))
  assert model.built and without_weights.has_none(model.weights)
  assert {tuple(v.shape) for v in model.weights} == {(4, 2), (2,)}


def test_the_scope_ends():
  with without_weights.without_weights():
    pass
  model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
  assert not without_weights.has_none(model.weights)
  assert model.weights[0].numpy().shape == (4, 2)


def test_variables_of_tensorflow_have_their_shape():
  with without_weights.without_weights():
    one = tf.Variable(lambda: tf.ones((3, 5)), name='one')
    other = tf.Variable([1., 2.])
  assert one.shape == (3, 5) and one.dtype == tf.float32
  assert without_weights.has_none([one
                                  ]) and not without_weights.has_none([other])


def _load(path):
  """A model whose maker looks at its weights."""
  del path
  model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
  if not model.weights[0].numpy().size:
    raise errors.InvalidGraphError('it raised') from IndexError()
  return model


def test_weights_that_are_used_while_a_model_is_made_are_allocated():
  notes = []
  model = tracing_worker._loaded(_load, 'models:make', notes.append)
  assert not without_weights.has_none(model.weights)
  assert notes == [
      'weights are allocated, as they are used while the model is made'
  ]


def test_a_maker_that_fails_either_way_is_an_error():

  def fail(path):
    raise errors.InvalidGraphError(path) from ValueError()

  notes = []
  with pytest.raises(errors.InvalidGraphError, match='models:make'):
    tracing_worker._loaded(fail, 'models:make', notes.append)
  assert not notes


@pytest.mark.e2e
def test_a_model_of_106_gb_is_planned_in_a_small_process():
  done = fresh.run_code(_PROGRAM)
  assert done.code == 0, done.stderr[-2000:]
  assert done.stdout.strip() == 'CPU:0'
