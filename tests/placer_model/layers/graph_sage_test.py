"""Tests of the GraphSAGE layer, with numbers one can compute in the head."""

import placer_model  # isort: skip  # before TensorFlow  # noqa: F401

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_gnn as tfgnn

from placer_model import graph_tensor
from placer_model.layers import graph_sage


def _apply(layer, hidden, edges):
  graph = graph_tensor.from_tensors(
      tf.constant(hidden, tf.float32),
      tf.reshape(tf.constant(edges, tf.int32), [-1, 2]))
  return layer(graph).node_sets[graph_tensor.OP][tfgnn.HIDDEN_STATE].numpy()


def _sigmoid(x):
  return 1 / (1 + np.exp(-x))


@pytest.fixture(name='layer')
def _layer():
  """W = 2, b = -1 for producers; W = 1, b = 0 for consumers; f = sum.

  f weighs the unit itself 1, consumers 100, producers 10.
  """
  layer = graph_sage.GraphSageLayer(1)
  _apply(layer, [[0.]], [])
  values = {'kernel': 1.0, 'bias': 0.0}
  for weight in layer.trainable_weights:
    weight.assign(
        tf.fill(weight.shape, values[weight.name.split('/')[-1].split(':')[0]]))
  producers = layer.convolutions[graph_tensor.PRODUCERS].trainable_weights
  next(w for w in producers if 'bias' in w.name).assign([-1.])
  # [W, V]: inside the sigmoid, and what TF-GNN adds behind the maximum.
  kernels = [w for w in producers if 'kernel' in w.name]
  kernels[0].assign([[2.]])
  # TF-GNN concatenates the state and the edge sets by name: consumers first.
  layer.dense.kernel.assign([[1.], [100.], [10.]])
  return layer


def test_equation_2_and_3_by_hand(layer):
  # 0 -> 2, 1 -> 2, 2 -> 3 with states 1, 3, 0, -2.
  result = _apply(layer, [[1.], [3.], [0.], [-2.]], [[0, 2], [1, 2], [2, 3]])
  expected = [
      1 + 100 * _sigmoid(0),  # consumer 2
      3 + 100 * _sigmoid(0),  # consumer 2
      0 + 10 * _sigmoid(2 * 3 - 1) + 100 * _sigmoid(-2),  # the larger producer
      -2 + 10 * _sigmoid(2 * 0 - 1),  # producer 2
  ]
  np.testing.assert_allclose(result[:, 0], expected, rtol=1e-5)


def test_without_neighbours_the_state_alone_counts(layer):
  np.testing.assert_allclose(_apply(layer, [[4.], [-4.]], []), [[4.], [0.]])


def test_the_order_of_edges_does_not_matter():
  layer = graph_sage.GraphSageLayer(5, seed=1)
  rng = np.random.default_rng(0)
  hidden = rng.normal(size=(9, 5))
  edges = np.array([(a, b) for a in range(9) for b in range(a + 1, 9, 2)])
  np.testing.assert_allclose(
      _apply(layer, hidden, edges),
      _apply(layer, hidden, edges[rng.permutation(len(edges))]), atol=1e-6)


def test_reset_draws_from_the_seed_alone():
  layers = [graph_sage.GraphSageLayer(4, seed) for seed in (1, 1, 2)]
  for layer in layers:
    _apply(layer, np.zeros((2, 4)), [[0, 1]])
    layer.reset()
  first, same, other = (layer.get_weights() for layer in layers)
  for a, b in zip(first, same):
    np.testing.assert_array_equal(a, b)
  assert any(np.any(a != b) for a, b in zip(first, other))
