"""Tests of the norms."""

import placer_model  # isort: skip  # before TensorFlow  # noqa: F401

import numpy as np
import tensorflow as tf

from placer_model.layers import norms


def test_layer_norm_equals_keras():
  x = tf.constant(np.random.default_rng(0).normal(3, 2, (7, 5)), tf.float32)
  keras = tf.keras.layers.LayerNormalization(epsilon=norms.EPSILON)
  np.testing.assert_allclose(norms.LayerNorm()(x), keras(x), atol=1e-5)


def test_graph_norm_by_hand():
  x = tf.constant([[1., 5.], [3., 5.]])
  np.testing.assert_allclose(norms.GraphNorm()(x), [[-1., 0.], [1., 0.]],
                             atol=1e-4)


def test_graph_norm_can_keep_the_mean():
  x = tf.constant([[2.], [4.]])
  layer = norms.GraphNorm()
  layer(x)
  layer.share.assign([0.])
  np.testing.assert_allclose(layer(x),
                             np.array([[2.], [4.]]) / np.sqrt(10), atol=1e-4)


def test_one_unit_has_nothing_of_its_own():
  x = tf.constant([[3., -2.]])
  np.testing.assert_array_equal(norms.GraphNorm()(x), [[0., 0.]])
  np.testing.assert_array_equal(norms.standardize(x), [[0., 0.]])
