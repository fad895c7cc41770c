"""Steps of models that only look like Keras', which `sources_test` traces."""

import dataclasses
import functools

import keras
import pytest
import tensorflow as tf
import tf_keras

from gdp_grappler import errors
from gdp_grappler.graph.sources import training_step
from helpers import strategies


def _spec(*shape):
  return tf.TensorSpec(shape, tf.float32)


class _Model:
  """What a step is made of, and what was asked of it."""

  optimizer = jit_compile = None
  output_names = ('p', 'q')

  def __init__(self, inputs=(_spec(None, 3),), outputs=(_spec(None, 5),),
               loss=None):
    self.inputs, self.outputs, self.loss = list(inputs), list(outputs), loss
    self.compiled = ()

  def compile(self, *arguments, **options):
    self.compiled = arguments
    self.loss, self.optimizer = arguments[1], arguments[0]
    self.options = options

  def make_train_function(self):
    self.train_function = lambda iterator: iterator.element_spec


def _elements(model, batch_size=8):
  notes = []
  step = training_step.empty_step(model, 'm:f', batch_size, notes.append)
  return step(), notes


@pytest.mark.parametrize('shape, expected', [((None, 3), [8, 3]),
                                             ((2, None), [2, 64]), ((), []),
                                             ((None, None, 1), [8, 64, 1])])
def test_unknown_dimensions(shape, expected):
  assert training_step.known_shape(shape, 8) == expected


def test_a_shape_of_unknown_rank():
  with pytest.raises(errors.InvalidGraphError, match='number of dimensions'):
    training_step.known_shape(None, 8)


def test_a_model_is_compiled_with_what_its_output_asks_for():
  model = _Model()
  (features, label), notes = _elements(model)
  assert model.compiled == ('adam', 'mean_squared_error')
  assert not model.options['jit_compile'] and model.jit_compile is False
  assert features.shape == (8, 3) and label.shape == (8, 5)
  assert notes[0] == 'batches of 8' and 'mean_squared_error' in notes[1]


@dataclasses.dataclass
class _Layer:
  activation: object


@pytest.mark.parametrize('name, loss, label', [
    ('softmax', 'sparse_categorical_crossentropy', [8]),
    ('sigmoid', 'binary_crossentropy', [8, 5]),
    ('linear', 'mean_squared_error', [8, 5]),
])
def test_the_loss_of_an_activation(name, loss, label):

  def activation(x):
    return x

  activation.__name__ = name
  output = _spec(None, 5)
  object.__setattr__(output, '_keras_history', (_Layer(activation), 0, 0))
  model = _Model(outputs=[output])
  (_, target), _ = _elements(model)
  assert model.compiled[1] == loss and target.shape.as_list() == label


def test_a_compiled_model_stays_as_it_is():
  model = _Model(loss='mse')
  model.optimizer = 'sgd'
  _elements(model)
  assert model.compiled == () and model.jit_compile is False


def test_losses_by_name_leave_outputs_out():
  model = _Model(outputs=[_spec(None, 5), _spec(None, 2)], loss={'q': 'mse'})
  model.optimizer = 'sgd'
  (_, labels), _ = _elements(model)
  assert {key: spec.shape.as_list() for key, spec in labels.items()
         } == {'q': [8, 2]}


def _masked_loss(labels, outputs):
  """The loss of TensorFlow's tutorial on transformers."""
  compute = keras.losses.SparseCategoricalCrossentropy(from_logits=True,
                                                       reduction='none')
  mask = tf.cast(labels != 0, tf.float32)
  return tf.reduce_sum(compute(labels, outputs) * mask) / tf.reduce_sum(mask)


def _distance(labels, outputs):
  return tf.reduce_sum(tf.abs(labels - outputs))


@pytest.mark.parametrize('loss, are_classes', [
    (_masked_loss, True),
    (keras.losses.CTC(), True),
    (_distance, False),
    (keras.losses.MeanSquaredError(), False),
    (tf_keras.losses.MeanSquaredError(), False),
])
def test_a_loss_that_takes_only_classes_gets_classes(loss, are_classes):
  """Only the name of a loss decided, so a model's own loss failed."""
  model = _Model(outputs=[_spec(None, 7, 5)], loss=loss)
  model.optimizer = 'sgd'
  (_, labels), notes = _elements(model)
  assert labels == (tf.TensorSpec(
      (8, 7), tf.int64) if are_classes else tf.TensorSpec(
          (8, 7, 5), tf.float32))
  assert any('labels taken as classes' in n for n in notes) == are_classes


def _labels(model):
  model.compile('sgd', model.loss)
  step = training_step.empty_step(model, 'm:f', 8, print)
  return step.args[0].element_spec[1]


@pytest.mark.parametrize('loss, shape', [
    ('ctc', (8, 7)),
    ('mse', (8, 7, 5)),
    (keras.losses.CTC, (8, 7)),
    (keras.losses.MeanSquaredError, (8, 7, 5)),
    ('no loss of Keras', (8, 7, 5)),
])
def test_keras_makes_the_loss_of_a_name_or_a_class(loss, shape):
  """A class was called without an object, and the name of CTC failed."""
  model = keras.Sequential([keras.Input((7, 3)), keras.layers.Dense(5)])
  model.loss = loss
  assert _labels(model).shape == shape


@pytest.mark.parametrize('library', [keras, tf_keras])
def test_losses_of_outputs_that_are_a_dictionary(library):
  """Labels had the names of the layers, so there were none."""
  x = library.Input((3,))
  model = library.Model(
      x, {
          'q': library.layers.Dense(5, name='first')
               (x), 'p': library.layers.Dense(2, name='second')(x)
      })
  model.loss = {'p': 'mse', 'q': 'mse'}
  assert {key: spec.shape.as_list() for key, spec in _labels(model).items()
         } == {'p': [8, 2], 'q': [8, 5]}


@pytest.mark.parametrize('error', [
    AssertionError, AttributeError, IndexError, KeyError, NotImplementedError,
    RuntimeError, TypeError, ValueError,
    functools.partial(tf.errors.InvalidArgumentError, None, None)
])
def test_a_loss_that_takes_no_labels_fails_in_the_step(error):
  """Some errors of a loss left the call without a word of the package."""

  def fails(labels, outputs):
    raise error('never')

  model = _Model(loss=fails)
  model.optimizer = 'sgd'
  (_, labels), notes = _elements(model)
  assert labels == _spec(8, 5) and notes == ['batches of 8']


@pytest.mark.parametrize('library', [keras, tf_keras])
def test_a_loss_of_a_replica_in_the_scope_of_its_strategy(library):
  """The loss has no replica before the step, and its error left the call."""

  def mean(labels, outputs):
    replicas = tf.distribute.get_replica_context().num_replicas_in_sync
    return tf.reduce_mean(tf.square(labels - outputs)) / replicas

  with strategies.one_device('CPU:0') as strategy, strategy.scope():
    model = library.Sequential([library.Input((3,)), library.layers.Dense(5)])
    model.loss = mean
    assert _labels(model).shape == (8, 5)


def test_labels_that_are_known_are_not_guessed():
  model = _Model(loss='mse')
  model.optimizer = 'sgd'
  label = tf.TensorSpec((8, 3), tf.int32)
  step = training_step.empty_step(model, 'm:f', 8, print, labels=(label,))
  assert step()[1] == label


def test_a_model_without_a_loss_has_no_labels():
  model = _Model()
  model.optimizer = 'sgd'
  features, notes = _elements(model)
  assert features.shape == (8, 3)
  # A train_step of the user's own may need labels, and fail.
  assert 'compiled without a loss: taking batches without labels' in notes[-1]


def test_several_inputs_and_a_dimension_that_is_not_known():
  model = _Model(inputs=[_spec(None, 3), _spec(4, None)], loss='mse')
  model.optimizer = 'sgd'
  ((first, second), _), notes = _elements(model)
  assert first.shape == (8, 3) and second.shape == (4, 64)
  assert notes == ['batches of 8', 'unknown dimensions of inputs taken as 64']


@pytest.mark.parametrize('make, noted', [
    (lambda: keras.Input((3,), sparse=True), True),
    (lambda: keras.Input((None,), ragged=True), True),
    (lambda: tf_keras.Input((3,), sparse=True), True),
    (lambda: tf_keras.Input((None,), ragged=True), True),
    (lambda: keras.Input((3,)), False),
    (lambda: tf_keras.Input((3,)), False),
])
def test_a_note_says_that_sparse_inputs_are_taken_as_dense(make, noted):
  """They were taken as dense without a word."""
  model = _Model(inputs=[make()], loss='mse')
  model.optimizer = 'sgd'
  assert (training_step.AS_DENSE in _elements(model)[1]) == noted


def test_what_is_no_model():
  with pytest.raises(errors.InvalidGraphError, match='m:f returned int'):
    training_step.empty_step(3, 'm:f', 8, print)


def test_a_model_that_does_not_know_its_inputs():
  with pytest.raises(errors.InvalidGraphError, match='does not know its input'):
    training_step.empty_step(_Model(inputs=()), 'm:f', 8, print)


def test_batches_that_no_shape_can_hold():
  with pytest.raises(errors.InvalidGraphError, match='smaller batch_size'):
    training_step.known_shape([None, 8], 2**31)
  assert training_step.known_shape([None, 8], 2**31 - 1) == [2**31 - 1, 8]
