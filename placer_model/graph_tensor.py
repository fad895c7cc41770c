"""Units and their edges as a `tfgnn.GraphTensor`."""

from __future__ import annotations

import tensorflow as tf
import tensorflow_gnn as tfgnn

OP = 'op'  # the node set
PRODUCERS = 'producers'  # edge set: units receive from their producers
CONSUMERS = 'consumers'  # edge set: units receive from their consumers


def from_tensors(hidden: tf.Tensor, edges: tf.Tensor, edge_bytes: tf.Tensor,
                 max_neighbors: int = 0) -> tfgnn.GraphTensor:
  """Returns the graph that GraphSAGE runs on.

  Each edge is present twice, once in each direction, because producers and
  consumers of a unit are both its neighbours. In both edge sets the receiver is
  the target.

  Args:
    hidden: float32 [M, h], state of each unit.
    edges: int32 [E, 2], producer and consumer.
    edge_bytes: float32 [E], bytes that each edge carries.
    max_neighbors: Largest number of producers, and of consumers, that a unit
      keeps; 0 keeps all.

  Returns:
    A scalar GraphTensor with M nodes.
  """
  num_units = tf.shape(hidden)[0]
  nodes = tfgnn.NodeSet.from_fields(sizes=tf.reshape(num_units, [1]),
                                    features={tfgnn.HIDDEN_STATE: hidden})
  edge_sets = {}
  for name, sender, receiver in ((PRODUCERS, 0, 1), (CONSUMERS, 1, 0)):
    senders, receivers = edges[:, sender], edges[:, receiver]
    if max_neighbors:
      kept = heaviest(receivers, edge_bytes, num_units, max_neighbors)
      senders, receivers = tf.gather(senders, kept), tf.gather(receivers, kept)
    edge_sets[name] = tfgnn.EdgeSet.from_fields(
        sizes=tf.reshape(tf.shape(senders)[0], [1]),
        adjacency=tfgnn.Adjacency.from_indices((OP, senders), (OP, receivers)))
  return tfgnn.GraphTensor.from_pieces(node_sets={OP: nodes},
                                       edge_sets=edge_sets)


def heaviest(receivers: tf.Tensor, edge_bytes: tf.Tensor, num_units: tf.Tensor,
             count: int) -> tf.Tensor:
  """Returns the edges with the most bytes of each receiver.

  Args:
    receivers: int32 [E], receiving unit of each edge.
    edge_bytes: float32 [E], bytes that each edge carries.
    num_units: int32 scalar, M.
    count: Edges to keep for each receiver. Among equal edges the first ones
      stay.

  Returns:
    int32 [E'], ascending indices of the edges kept.
  """
  by_bytes = tf.argsort(edge_bytes, direction='DESCENDING', stable=True)
  by_receiver = tf.argsort(tf.gather(receivers, by_bytes), stable=True)
  order = tf.gather(by_bytes, by_receiver)  # [E], by receiver, then bytes
  degrees = tf.math.unsorted_segment_sum(tf.ones_like(receivers), receivers,
                                         num_units)
  starts = tf.cumsum(degrees, exclusive=True)
  rank = tf.range(tf.shape(order)[0]) - tf.gather(starts,
                                                  tf.gather(receivers, order))
  return tf.sort(tf.boolean_mask(order, rank < count))
