"""Units and their edges as a `tfgnn.GraphTensor`."""

from __future__ import annotations

import tensorflow as tf
import tensorflow_gnn as tfgnn

OP = 'op'  # the node set
PRODUCERS = 'producers'  # edge set: units receive from their producers
CONSUMERS = 'consumers'  # edge set: units receive from their consumers


def from_tensors(hidden: tf.Tensor, edges: tf.Tensor) -> tfgnn.GraphTensor:
  """Returns the graph that GraphSAGE runs on.

  Each edge is present twice, once in each direction, because producers and
  consumers of a unit are both its neighbours. In both edge sets the receiver is
  the target.

  Args:
    hidden: float32 [M, h], state of each unit.
    edges: int32 [E, 2], producer and consumer.

  Returns:
    A scalar GraphTensor with M nodes.
  """
  nodes = tfgnn.NodeSet.from_fields(sizes=tf.shape(hidden)[:1],
                                    features={tfgnn.HIDDEN_STATE: hidden})
  edge_sets = {}
  for name, sender, receiver in ((PRODUCERS, 0, 1), (CONSUMERS, 1, 0)):
    edge_sets[name] = tfgnn.EdgeSet.from_fields(
        sizes=tf.shape(edges)[:1], adjacency=tfgnn.Adjacency.from_indices(
            (OP, edges[:, sender]), (OP, edges[:, receiver])))
  return tfgnn.GraphTensor.from_pieces(node_sets={OP: nodes},
                                       edge_sets=edge_sets)
