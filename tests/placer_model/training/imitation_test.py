import numpy as np
import tensorflow as tf

from placer_model.training import imitation

_ALLOWED = np.array([[1, 1, 1], [0, 1, 1], [0, 0, 1]], bool)


class _Logits(tf.keras.layers.Layer):
  """A logit of its own for every unit and device."""

  def __init__(self):
    super().__init__()
    self.table = self.add_weight(shape=_ALLOWED.shape, initializer='zeros')

  def call(self, features):
    return tf.where(features['allowed'], self.table, -1e9)


def _imitation(optimizer=None):
  return imitation.Imitation(_Logits(), {'allowed': tf.constant(_ALLOWED)},
                             _ALLOWED, .5, optimizer or
                             tf.keras.optimizers.Adam(.5))


def test_the_rest_of_the_confidence_is_for_other_allowed_devices():
  np.testing.assert_allclose(
      _imitation()._targets(np.array([0, 1, 2]), .8),
      # The last unit has one device only.
      [[.8, .1, .1], [0, .8, .2], [0, 0, 1]])


def test_it_says_what_it_was_taught():
  teacher = _imitation()
  first = teacher.steps(np.array([2, 2, 2]), .9, 1)
  last = teacher.steps(np.array([2, 2, 2]), .9, 5)
  assert last < first
  assert teacher.greedy().tolist() == [2, 2, 2]
  teacher.steps(np.array([1, 1, 2]), .9, 10)
  assert teacher.greedy().tolist() == [1, 1, 2]


def test_no_steps_teach_nothing():
  assert np.isnan(_imitation().steps(np.array([0, 1, 2]), .9, 0))


def test_slower_is_a_share_of_the_first_rate():
  optimizer = tf.keras.optimizers.Adam(.5)
  teacher = _imitation(optimizer)
  for share in (.5, .1):
    teacher.slow_down(share)
    np.testing.assert_allclose(float(optimizer.learning_rate), .5 * share,
                               rtol=1e-6)
