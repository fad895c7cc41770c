"""Layers written out."""

import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler.workloads import layers
from helpers import v1_graphs

tf1 = tf.compat.v1


@pytest.mark.parametrize('steps', [1, 3])
def test_debiased_statistics_do_not_remember_the_zero(steps):
  x = np.random.default_rng(0).normal(3., 2., [8, 2, 2, 1])
  with tf.Graph().as_default():
    layers.batch_norm(tf.constant(x, tf.float32), 'norm', .99, debias=True)
    updates = tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      for _ in range(steps):
        session.run(updates)
      values = {v.op.name: session.run(v) for v in tf1.global_variables()}
  np.testing.assert_allclose(values['norm/moving_mean'], [x.mean()], rtol=1e-3)
  np.testing.assert_allclose(values['norm/moving_variance'], [x.var()],
                             rtol=1e-3)


@pytest.mark.parametrize('fused', [False, True])
def test_batch_norm_normalizes(fused):
  x = np.random.default_rng(0).normal(3., 2., [8, 2, 2, 3])
  y = v1_graphs.run(lambda: layers.batch_norm(tf.constant(x, tf.float32),
                                              'norm', fused=fused))
  np.testing.assert_allclose(y, (x - x.mean(
      (0, 1, 2))) / np.sqrt(x.var((0, 1, 2)) + 1e-3), atol=1e-4)


def test_dense_keeps_the_other_axes_and_decays():

  def build():
    x = tf.ones([2, 3, 4])
    y = layers.dense(x, 'd', 5, rate=.5)
    with tf1.variable_scope('d', reuse=True):
      kernel = tf1.get_variable('kernel')
    return y, kernel, layers.total_loss([tf.constant(1.)])

  y, kernel, loss = v1_graphs.run(build)
  np.testing.assert_allclose(y, np.ones([2, 3, 4]) @ kernel, atol=1e-6)
  np.testing.assert_allclose(loss, 1. + .25 * (kernel**2).sum(), rtol=1e-5)


def test_layer_norm_normalizes_the_last_axis():
  x = np.random.default_rng(0).normal(3., 2., [2, 3, 16])
  y = v1_graphs.run(
      lambda: layers.layer_norm(tf.constant(x, tf.float32), 'norm'))
  np.testing.assert_allclose(y.mean(-1), np.zeros([2, 3]), atol=1e-5)
  np.testing.assert_allclose(y.std(-1), np.ones([2, 3]), rtol=1e-4)


@pytest.mark.parametrize('smoothing', [0., .1])
def test_cross_entropy_is_written_out(smoothing):
  logits = np.array([[1., 2., 0.], [0., 0., 5.]])
  labels = np.array([0, 2])
  log_p = logits - np.log(np.exp(logits).sum(1, keepdims=True))
  targets = np.eye(3)[labels] * (1. - smoothing) + smoothing / 3
  loss = v1_graphs.run(lambda: layers.cross_entropy(
      tf.constant(logits, tf.float32), tf.constant(labels), smoothing))
  np.testing.assert_allclose(loss, -(targets * log_p).sum(1).mean(), rtol=1e-5)


def test_stage_may_be_entered_again():
  with tf.Graph().as_default():
    names = []
    for _ in range(2):
      with layers.stage(3):
        names.append(layers.dense(tf.ones([1, 2]), 'd', 2).op.name)
    assert len(tf1.trainable_variables()) == 2
  assert all(name.startswith('stage3') for name in names)
  assert len(set(names)) == 2
