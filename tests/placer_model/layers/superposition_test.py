"""Tests of feature conditioning."""

import placer_model  # isort: skip  # before TensorFlow  # noqa: F401

import numpy as np
import tensorflow as tf

from placer_model.layers import superposition
from placer_model.layers import transformer_xl


class _Double(tf.keras.layers.Layer):

  def call(self, x):
    return 2 * x


def _conditioning(scale=0.3, widths=(2, 3)):
  return superposition.ConditioningLayer(_Double(), widths, scale)


def test_the_product_by_hand():
  x = tf.constant([[1., 2.], [3., 4.]])
  conditions = {2: tf.constant([[10., 1.], [0., -1.]])}
  np.testing.assert_array_equal(superposition.superpose(x, conditions),
                                [[10., 2.], [0., -4.]])


def test_none_switches_it_off():
  x = tf.constant([[1., 2.]])
  assert superposition.superpose(x, None) is x


def test_a_dense_layer_sees_the_product():
  """Equation 5 for one layer: g(c * x) with g = identity, plus residual."""
  layer = transformer_xl.TransformerXlLayer(2, 1, 2, 2, 4, attention=False)
  x = tf.constant([[1., -1.], [-2., 2.]])
  conditions = {2: tf.constant([[3., 5.], [7., 11.]])}
  layer(x, conditions)
  for dense in (layer.inner, layer.outer):
    dense.kernel.assign(tf.eye(2))
  # The norm makes [1, -1] and [-1, 1]; inner is relu(c * that); outer is
  # c * inner once more.
  np.testing.assert_allclose(
      layer(x, conditions) - x, [[9., 0.], [0., 121.]], rtol=1e-3)


def test_each_width_has_its_condition():
  conditions = _conditioning()(tf.constant([[1., 5., 3.]]))
  assert {w: c.shape.as_list() for w, c in conditions.items()
         } == {2: [1, 2], 3: [1, 3]}


def test_a_fresh_condition_is_near_one():
  x = tf.constant(np.random.default_rng(0).normal(size=(500, 32)), tf.float32)
  (condition,) = _conditioning(0.3, (64,))(x).values()
  assert abs(np.mean(condition) - 1) < 0.05
  assert 0.2 < np.std(condition) < 0.4


def test_the_condition_comes_from_the_graph_embedding():
  layer = _conditioning()
  one = layer(tf.constant([[1., 5., 3.]]))[2]
  other = layer(tf.constant([[1., 5., 9.]]))[2]
  assert np.any(one != other)
