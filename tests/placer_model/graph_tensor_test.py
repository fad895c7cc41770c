"""Tests of the GraphTensor."""

import placer_model  # isort: skip  # before TensorFlow  # noqa: F401

import tensorflow as tf

from placer_model import graph_tensor


def test_both_directions_are_neighbours():
  graph = graph_tensor.from_tensors(tf.zeros([3, 2]),
                                    tf.constant([[0, 1], [0, 2]]))
  producers = graph.edge_sets[graph_tensor.PRODUCERS].adjacency
  consumers = graph.edge_sets[graph_tensor.CONSUMERS].adjacency
  assert producers.source.numpy().tolist() == [0, 0]
  assert producers.target.numpy().tolist() == [1, 2]
  assert consumers.source.numpy().tolist() == [1, 2]
  assert consumers.target.numpy().tolist() == [0, 0]


def test_no_edges():
  graph = graph_tensor.from_tensors(tf.zeros([2, 1]), tf.zeros([0, 2],
                                                               tf.int32))
  assert graph.edge_sets[graph_tensor.PRODUCERS].sizes.numpy().tolist() == [0]
