"""Tests of the GraphTensor and of the choice of neighbours."""

import placer_model  # isort: skip  # before TensorFlow  # noqa: F401

import numpy as np
import tensorflow as tf

from placer_model import graph_tensor


def _naive_heaviest(receivers, edge_bytes, count):
  kept = []
  for receiver in set(receivers):
    mine = [e for e, r in enumerate(receivers) if r == receiver]
    mine.sort(key=lambda e: (-edge_bytes[e], e))
    kept += mine[:count]
  return sorted(kept)


def test_both_directions_are_neighbours():
  graph = graph_tensor.from_tensors(tf.zeros([3, 2]),
                                    tf.constant([[0, 1], [0, 2]]), tf.ones([2]))
  producers = graph.edge_sets[graph_tensor.PRODUCERS].adjacency
  consumers = graph.edge_sets[graph_tensor.CONSUMERS].adjacency
  assert producers.source.numpy().tolist() == [0, 0]
  assert producers.target.numpy().tolist() == [1, 2]
  assert consumers.source.numpy().tolist() == [1, 2]
  assert consumers.target.numpy().tolist() == [0, 0]


def test_a_limit_keeps_the_heaviest_on_each_side():
  edges = tf.constant([[0, 3], [1, 3], [2, 3], [0, 2]])
  graph = graph_tensor.from_tensors(tf.zeros([4, 1]), edges,
                                    tf.constant([1., 5., 5., 9.]),
                                    max_neighbors=1)
  producers = graph.edge_sets[graph_tensor.PRODUCERS].adjacency
  consumers = graph.edge_sets[graph_tensor.CONSUMERS].adjacency
  # 3 keeps 1, the first of two equals; 2 keeps its only producer.
  assert sorted(zip(producers.source.numpy(),
                    producers.target.numpy())) == [(0, 2), (1, 3)]
  # Every unit has one consumer at most after 0 has dropped 3 for 2.
  assert sorted(zip(consumers.target.numpy(),
                    consumers.source.numpy())) == [(0, 2), (1, 3), (2, 3)]


def test_heaviest_equals_a_naive_choice():
  rng = np.random.default_rng(0)
  for count in (1, 2, 5, 100):
    receivers = rng.integers(0, 17, 150).astype(np.int32)
    edge_bytes = rng.integers(0, 6, 150).astype(np.float32)  # many equals
    kept = graph_tensor.heaviest(tf.constant(receivers),
                                 tf.constant(edge_bytes), 17, count)
    assert kept.numpy().tolist() == _naive_heaviest(receivers.tolist(),
                                                    edge_bytes.tolist(), count)


def test_no_edges():
  graph = graph_tensor.from_tensors(tf.zeros([2, 1]), tf.zeros([0, 2],
                                                               tf.int32),
                                    tf.zeros([0]), max_neighbors=2)
  assert graph.edge_sets[graph_tensor.PRODUCERS].sizes.numpy().tolist() == [0]
