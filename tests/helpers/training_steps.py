"""Steps of small workloads on one batch of random data."""

import re

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
_CLASSES = 10


def session():
  """Returns a session that runs a graph without any graph optimizer."""
  config = tf1.ConfigProto()
  config.graph_options.rewrite_options.disable_meta_optimizer = True
  return tf1.Session(config=config)


def losses(workload, steps=20):
  """Returns float [steps], the loss before each step."""
  with tf.Graph().as_default() as graph:
    tf1.set_random_seed(1)
    loss = workload.build()
    step = workload.optimizer().minimize(loss, name='train')
    draw = np.random.default_rng(0)
    feeds = {
        op.outputs[0]: made_up(op.outputs[0], draw)
        for op in graph.get_operations() if op.type == 'Placeholder'
    }
    with session() as running:
      running.run(tf1.global_variables_initializer())
      return [running.run((loss, step), feeds)[0] for _ in range(steps)]


def made_up(placeholder, draw):
  """Returns labels below 10, or normally distributed values."""
  shape = placeholder.shape.as_list()
  if placeholder.dtype.is_integer:
    return draw.integers(0, _CLASSES, shape)
  return draw.normal(size=shape)


def sizes(graph):
  """Returns the number of weights, and the set of stages with weights."""
  variables = graph.get_collection(tf1.GraphKeys.TRAINABLE_VARIABLES)
  return (sum(v.shape.num_elements() for v in variables),
          {int(re.match(r'stage(\d+)/', v.name)[1]) for v in variables})
