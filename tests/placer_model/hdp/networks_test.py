import numpy as np
import pytest
import tensorflow as tf

from placer_model.hdp import config as config_lib
from placer_model.hdp import feed_forward
from placer_model.hdp import grouper as grouper_lib
from placer_model.hdp import seq2seq
from placer_model.hdp import weights as weights_lib

_CONFIG = config_lib.HdpConfig(hidden_units=8, attention_units=6,
                               grouper_units=5, tanh_constant=3.,
                               temperature=1., initial_group_scale=1.,
                               first_group_logit=1.)
_SEED = tf.constant([3, 4])


def _rows(k, width):
  return tf.constant(np.random.default_rng(0).random((k, width)), tf.float32)


def _placers():
  return [
      seq2seq.Seq2SeqPlacer(4, 3, _CONFIG, 0),
      feed_forward.FeedForwardPlacer(4, 3, _CONFIG, 0)
  ]


def test_equation_1():
  np.testing.assert_allclose(
      weights_lib.bounded(tf.constant([1., -6.]), 2., 3.),
      2 * np.tanh([1 / 3, -2.]), rtol=1e-6)


@pytest.mark.parametrize('placer', _placers(), ids=lambda p: p.name)
def test_samples_have_the_frequency_that_log_prob_states(placer):
  rows = _rows(2, 4)
  allowed = tf.constant([[True] * 3, [True, False, True]])
  drawn = placer.sample(rows, allowed, 4000, _SEED).numpy()
  assert (drawn[:, 1] != 1).all()
  every = np.array([(a, b) for a in range(3) for b in (0, 2)], np.int32)
  log_p = placer.log_prob(rows, allowed, tf.constant(every))
  np.testing.assert_allclose(np.exp(log_p).sum(), 1., rtol=1e-5)
  share = [(drawn == pair).all(axis=1).mean() for pair in every]
  np.testing.assert_allclose(share, np.exp(log_p), atol=0.03)


def test_every_weight_of_the_placer_learns():
  placer = _placers()[0]
  with tf.GradientTape() as tape:
    log_p = placer.log_prob(
        _rows(6, 4), tf.ones([6, 3], tf.bool),
        tf.constant([[0, 1, 2, 0, 1, 2], [1, 1, 0, 0, 2, 2]]))
    loss = tf.reduce_sum(log_p)
  for gradient in tape.gradient(loss, placer.trainable_variables):
    assert np.abs(gradient).max() > 0


def test_decoder_knows_the_device_it_named_last():
  placer = _placers()[0]
  allowed = tf.ones([2, 3], tf.bool)
  log_p = placer.log_prob(
      _rows(2, 4), allowed,
      tf.constant([[a, b] for a in range(3) for b in range(3)]))
  joint = np.exp(log_p).reshape(3, 3)
  given = joint / joint.sum(axis=1, keepdims=True)
  assert np.abs(given[0] - given[1]).max() > 1e-3


def test_grouper_samples_what_log_prob_states():
  grouper = grouper_lib.Grouper(4, 3, _CONFIG, 0, np.full(3000, 1))
  units = tf.repeat(_rows(1, 4), 3000, axis=0)
  drawn = grouper.sample(units, _SEED).numpy()
  p = [
      float(tf.exp(grouper.log_prob(units, tf.fill([3000], g)) / 3000))
      for g in range(3)
  ]
  np.testing.assert_allclose(
      np.bincount(drawn, minlength=3) / 3000, p, atol=0.03)
