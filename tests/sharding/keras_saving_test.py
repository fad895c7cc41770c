"""What is saved of tables in parts is whole, and loaded either way."""

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from helpers import word_tables

pytestmark = [
    # Of variables of Keras itself, when it saves them.
    pytest.mark.filterwarnings('ignore:__array__:DeprecationWarning'),
    # tf_keras says that these formats are old.
    pytest.mark.filterwarnings('ignore:You are saving:UserWarning')
]


@pytest.fixture(params=[keras, tf_keras], ids=['keras', 'tf_keras'], name='api')
def _api(request):
  return request.param


# tf_keras has one format in all directions, the other in one or two.
@pytest.mark.parametrize('api, before, after, name, optimizer', [
    *((keras, before, after, 'model.keras', lambda: 'adam')
      for before, after in [(3, 3), (3, 0), (0, 3)]),
    *((tf_keras, before, after, 'model.keras', lambda: 'adam')
      for before, after in [(3, 0), (0, 3), (2, 4)]),
    (tf_keras, 2, 4, 'model.h5', lambda: 'adam'),
    (tf_keras, 3, 0, 'model.h5', tf_keras.optimizers.legacy.Adam),
    (tf_keras, 0, 3, 'model.h5', tf_keras.optimizers.legacy.Adam)
])
def test_a_model_goes_on_as_it_was_saved(api, before, after, name, optimizer,
                                         tmp_path):
  model = word_tables.classifier(api, before, optimizer())
  word_tables.train(model)
  model.save(tmp_path / name)
  with word_tables.scope(after), warnings.catch_warnings():
    warnings.filterwarnings('error', message='Skipping')
    loaded = api.models.load_model(tmp_path / name)
  assert len(loaded.variables) == 3 + 2 * max(after - 1, 0)
  word_tables.assert_equal(model, loaded)
  # The file has the moments of Adam, too. They change the loss of the second
  # step.
  losses = [
      (word_tables.train(model), word_tables.train(loaded)) for _ in range(2)
  ]
  np.testing.assert_allclose(*zip(*losses), rtol=1e-6)


@pytest.mark.parametrize('api, name', [(keras, 'w.weights.h5'),
                                       (keras, 'old.h5'),
                                       (tf_keras, 'w.weights.h5'),
                                       (tf_keras, 'w.h5'),
                                       (tf_keras, 'checkpoint')])
@pytest.mark.parametrize('before, after', [(3, 0), (0, 3), (2, 4)])
def test_weights_go_from_one_to_the_other(api, name, before, after, tmp_path):
  one, other = (word_tables.classifier(api, parts) for parts in (before, after))
  other.set_weights([0 * w for w in other.get_weights()])
  if name == 'old.h5':
    one.save(tmp_path / name)
  else:
    one.save_weights(tmp_path / name)
  other.load_weights(tmp_path / name)
  word_tables.assert_equal(one, other)


def test_weights_are_got_and_set_as_whole_ones(api):
  word_tables.assert_weights_are_whole(
      *(word_tables.classifier(api, parts) for parts in (3, 0)),
      'embeddings' if api is keras else 'words/embeddings:0')


def test_a_layer_gets_its_initial_weights_whole(api):
  word_tables.assert_initial_weights_are_whole(api, word_tables.IDS,
                                               word_tables.ROWS, 6)


def test_exports_have_the_parts(tmp_path):
  model = word_tables.classifier(keras, 3)
  word_tables.train(model)
  model.export(tmp_path / 'exported', verbose=False)
  loaded = tf.saved_model.load(tmp_path / 'exported')
  np.testing.assert_allclose(
      loaded.serve(tf.constant(word_tables.IDS, tf.int32)),
      model(word_tables.IDS), rtol=1e-6)
  assert [tuple(v.shape) for v in loaded.variables] == [
      *((rows, 6) for rows in (8, 8, 7)), *((30, units) for units in (8, 8, 7)),
      (word_tables.ROWS,)
  ]


@pytest.mark.parametrize('optimizer', [
    lambda: keras.optimizers.Lamb(), lambda: keras.optimizers.SGD(clipnorm=1.)
], ids=['lamb', 'clipnorm'])
def test_optimizers_that_look_at_whole_variables_are_warned_of(optimizer):
  model = word_tables.classifier(keras, 2, optimizer())
  with pytest.warns(UserWarning, match='tables in parts'):
    word_tables.train(model)
  with warnings.catch_warnings():
    warnings.filterwarnings('error', message='The model has tables')
    word_tables.train(word_tables.classifier(keras, 0, optimizer()))
