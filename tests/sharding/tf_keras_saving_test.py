"""What tf_keras saves of tables in parts is whole, and loaded either way."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from helpers import word_tables

_DIRECTIONS = [(3, 0), (0, 3), (2, 4)]
_OPTIMIZERS = {
    'adam': tf_keras.optimizers.Adam,
    'legacy adam': tf_keras.optimizers.legacy.Adam
}


# Each optimizer in one direction, and one optimizer in all.
@pytest.mark.parametrize('has_slots', [False, True], ids=['new', 'trained'])
@pytest.mark.parametrize('before, after, optimizer', [
    *((3, 0, optimizer) for optimizer in _OPTIMIZERS), (0, 3, 'adam'),
    (2, 4, 'adam')
])
def test_a_checkpoint_has_the_whole(before, after, optimizer, has_slots,
                                    tmp_path):
  # A traced step creates slots, and restores them, inside a tf.function.
  eagerly = has_slots or (before, optimizer) == (2, 'adam')
  model, other = (word_tables.classifier(tf_keras, parts,
                                         _OPTIMIZERS[optimizer]())
                  for parts in (before, after))
  word_tables.train(model)
  if has_slots:
    word_tables.train(other)
    word_tables.train(other)
  path = tf.train.Checkpoint(model).save(str(tmp_path / 'checkpoint'))
  tf.train.Checkpoint(other).restore(path).expect_partial()
  word_tables.assert_equal(model, other)
  losses = [(word_tables.train(model), word_tables.train(other, eagerly))
            for _ in range(2)]
  np.testing.assert_allclose(*zip(*losses), rtol=1e-6)
  shapes = {tuple(shape) for _, shape in tf.train.list_variables(path)}
  assert {(word_tables.ROWS, 6), (30, word_tables.ROWS),
          (word_tables.ROWS,)} <= shapes
  assert shapes <= {(word_tables.ROWS, 6), (30, word_tables.ROWS),
                    (word_tables.ROWS,), ()}


@pytest.mark.parametrize('before, after', _DIRECTIONS)
def test_a_saved_model_has_the_whole(before, after, tmp_path):
  model = word_tables.classifier(tf_keras, before, tf_keras.optimizers.SGD(.1))
  word_tables.train(model)
  model.save(tmp_path / 'folder')
  with word_tables.scope(after):
    loaded = tf_keras.models.load_model(tmp_path / 'folder')
  assert len(loaded.variables) == 3 + 2 * max(after - 1, 0)
  word_tables.assert_equal(model, loaded)
  np.testing.assert_allclose(word_tables.train(loaded),
                             word_tables.train(model), rtol=1e-6)


def test_an_exported_model_serves_without_us(tmp_path):
  model = word_tables.classifier(tf_keras, 3)
  word_tables.train(model)
  model.export(tmp_path / 'exported')
  served = tf.saved_model.load(str(tmp_path / 'exported'))
  np.testing.assert_allclose(
      served.serve(tf.constant(word_tables.IDS, tf.int32)),
      model(word_tables.IDS), rtol=1e-5)
  model.save(tmp_path / 'saved')
  plain = tf.saved_model.load(str(tmp_path / 'saved'))
  signature = plain.signatures['serving_default']
  found, = signature(tf.constant(word_tables.IDS, tf.int32)).values()
  np.testing.assert_allclose(found, model(word_tables.IDS), rtol=1e-5)
