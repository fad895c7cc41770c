"""A program for TensorFlow 1 whose placer is a program for TensorFlow 2."""

import os
import tempfile

import common
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
common.make_devices(2)

from gdp_grappler.plugin import optimizer  # noqa: E402
from gdp_grappler.plugin import outcome as outcome_lib  # noqa: E402


class Policy(tf.Module):

  @tf.function(input_signature=[tf.TensorSpec((None,), tf.int32)])
  def place(self, ops):
    """Places pairs of ops on two devices in turn, by a loop of TensorFlow 2."""
    i = tf.constant(0)
    while i < 3:
      i += 1
    return (ops + i - 3) // 2 % 2


def learned(source, settings, **unused_options):
  """Places a graph by a policy that is saved, loaded and run in the pass."""
  with tempfile.TemporaryDirectory() as directory:
    tf.saved_model.save(Policy(), os.path.join(directory, 'policy'))
    policy = tf.saved_model.load(os.path.join(directory, 'policy'))
  assert tf.executing_eagerly()
  nodes = source.graph_def.node
  choice = policy.place(tf.range(len(nodes), dtype=tf.int32)).numpy()
  movable = ('MatMul', 'Relu', 'Sin')
  return outcome_lib.Outcome(
      tuple(source.devices[c] if node.op in movable else node.device
            for node, c in zip(nodes, choice)), 'placed')


def main():
  optimizer.optimize = learned
  results = {}
  for name, option in (('stock', False), ('placed', common.RANDOM)):
    common.set_option(option)
    with tf.Graph().as_default():
      x = tf1.placeholder(tf.float32, (8, 8))
      y = x
      for _ in range(12):
        y = tf.nn.relu(tf.sin(tf.matmul(y, y)))
      metadata = tf1.RunMetadata()
      with tf1.Session() as session:
        value = session.run(tf.reduce_sum(y), {x: np.ones((8, 8)) / 8},
                            tf1.RunOptions(output_partition_graphs=True),
                            metadata)
    results[name] = {
        'value': float(value),
        'devices': common.count(metadata.partition_graphs)
    }
  common.finish(**results)


if __name__ == '__main__':
  main()
