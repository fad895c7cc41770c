"""Runs a graph that was placed before, with an order of starts.

The order is that of two GPUs, which are called CPUs here.
"""

import common
import tensorflow as tf

from gdp_grappler.graph import start_order

tf1 = tf.compat.v1
_GPU = '/job:localhost/replica:0/task:0/device:GPU:'
common.make_devices(3)


def placed():
  """A sum of 40 products, in two halves."""
  with tf.Graph().as_default() as graph:
    x = tf1.placeholder(tf.float32, (4, 4), name='x')
    halves = []
    for i in range(2):
      with tf.device(f'{_GPU}{i}'):
        draws = [
            tf.random.uniform((4, 4), 1., 1.0000001, seed=j) for j in range(20)
        ]
        halves.append(tf.add_n([draw @ x for draw in draws]))
    with tf.device(_GPU + '0'):
      tf.add(*halves, name='result')
  result = start_order.fix(graph.as_graph_def())
  for node in result.node:
    node.device = node.device.replace('GPU', 'CPU')
  return result


def run(definition, option):
  """Returns the result, and the numbers of triggers and of devices."""
  common.set_option(option)
  # A scope changes the names of the triggers.
  step = tf1.wrap_function(
      lambda x: tf.graph_util.import_graph_def(
          definition, {'x': x}, ['result:0']), [tf.TensorSpec((4, 4))])
  result, graphs = common.partition_graphs(lambda: step(tf.eye(4)))
  return [
      float(tf.round(tf.reduce_sum(result))),
      sum(node.op == 'ControlTrigger' for graph in graphs
          for node in graph.node),
      len(graphs)
  ]


if __name__ == '__main__':
  graph_def = placed()
  common.finish(stock=run(graph_def, False), placed=run(graph_def,
                                                        common.RANDOM))
