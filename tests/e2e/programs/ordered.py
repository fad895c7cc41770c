"""Losses of training steps with TensorFlow's order and with control edges.

Usage: ordered.py CLUSTER_FILE
"""

import logging
import math
import sys

import common
import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context

from gdp_grappler.cluster import placement
from gdp_grappler.cluster import resolve
from gdp_grappler.evaluation.ordering import control_edges
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.legality import orderable
from gdp_grappler.graph.sources import pruning
from gdp_grappler.placers import placer
from gdp_grappler.placers import registry

tf1 = tf.compat.v1
common.make_devices(4)

X = np.random.default_rng(0).normal(size=(16, 12, 32)).astype(np.float32)
Y = np.random.default_rng(1).normal(size=(16, 1)).astype(np.float32)


def dense():
  return tf.keras.Sequential([
      tf.keras.Input((12, 32)),
      tf.keras.layers.Flatten(),
      *[tf.keras.layers.Dense(48, activation='relu') for _ in range(5)],
      tf.keras.layers.Dense(1)
  ])


def lstm():
  return tf.keras.Sequential([
      tf.keras.Input((12, 32)),
      tf.keras.layers.Cropping1D((0, 7)), *[
          tf.keras.layers.LSTM(24, return_sequences=True, unroll=True)
          for _ in range(2)
      ],
      tf.keras.layers.Flatten(),
      tf.keras.layers.Dense(1)
  ])


def branching():
  inputs = tf.keras.Input((12, 32))
  flat = tf.keras.layers.Flatten()(inputs)
  ends = []
  for width in (16, 64, 128, 32):
    end = flat
    for _ in range(3):
      end = tf.keras.layers.Dense(width, activation='tanh')(end)
    ends.append(tf.keras.layers.Dropout(0.1, seed=width)(end))
  joined = tf.keras.layers.Concatenate()(ends)
  return tf.keras.Model(inputs, tf.keras.layers.Dense(1)(joined))


def conditional():
  """A step of one's own with a condition, and a loop beside branches."""
  inputs = tf.keras.Input((12, 32))
  ends = [inputs] * 4
  for width in (16, 48, 8):
    ends = [
        tf.keras.layers.Conv1D(width, size, padding='same',
                               activation='tanh')(end)
        for size, end in zip((1, 2, 3, 5), ends)
    ]
  ends = [tf.keras.layers.GlobalMaxPooling1D()(end) for end in ends]
  joined = tf.keras.layers.Concatenate()(ends)
  return tf.keras.Model(inputs, tf.keras.layers.Dense(1)(joined))


def make_step(model, optimizer, branches):
  variables = model.trainable_variables

  @tf.function
  def step(x, y, n):
    with tf.GradientTape() as tape:
      loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
      if branches:
        loss = tf.cond(n % 2 > 0, lambda: loss * 2., lambda: tf.sqrt(loss))
    gradients = tape.gradient(loss, variables)
    if branches:
      total = tf.while_loop(
          lambda i, s: i < n, lambda i, s:
          (i + 1, s + tf.reduce_sum(tf.square(gradients[0]))), (0, 0.))[1]
      gradients = [g / (1. + total) for g in gradients]
    optimizer.apply_gradients(zip(gradients, variables))
    return loss

  return step


class Training:
  """A model and its step, which is traced once for all orders."""

  def __init__(self, make):
    tf.keras.utils.set_random_seed(3)
    model = make()
    optimizer = tf.keras.optimizers.Adam(0.01)
    optimizer.build(model.trainable_variables)
    self._step = make_step(model, optimizer, make is conditional)
    self._start = [(variable, variable.numpy())
                   for variable in (*model.variables, *optimizer.variables)]

  def losses(self, order, cluster, seed):
    """Returns six losses from the start, and the number of control inputs."""
    common.set_option(
        {**common.RANDOM, 'cluster': cluster, 'order': order, 'seed': seed})
    for variable, value in self._start:
      variable.assign(value)
    # The step is placed when it is instantiated.
    context.context().clear_kernel_cache()
    context.context().enable_graph_collection()
    found = [
        float(self._step(tf.constant(X), tf.constant(Y), tf.constant(n)))
        for n in range(6)
    ]
    graphs = context.export_run_metadata().function_graphs
    context.context().disable_graph_collection()
    return found, max(control_inputs(g.partition_graphs) for g in graphs)


def control_inputs(graphs):
  return sum(
      text.startswith('^') for graph in graphs for node in graph.node
      for text in node.input)


def v1_losses(edges, cluster):
  """Returns six losses of a session whose graph was placed offline."""
  with tf.Graph().as_default() as graph:
    x = tf1.constant(X[:, 0])
    ends = []
    for width in (8, 64, 16, 32):
      end = x
      for shape in ((32, width), *[(width, width)] * 4):
        weights = tf1.Variable(tf.sin(tf.range(1., 1. + math.prod(shape))))
        end = tf.tanh(end @ tf.reshape(weights, shape) * 0.2)
      ends.append(end)
    loss = tf.reduce_sum(tf.square(tf.concat(ends, 1)))
    train = tf1.train.GradientDescentOptimizer(0.001).minimize(loss)
    start = tf1.global_variables_initializer()
  placed = place(graph.as_graph_def(), (loss.op.name, train.name), cluster,
                 edges)
  with tf.Graph().as_default() as graph:
    tf1.import_graph_def(placed, name='')
  config = tf1.ConfigProto(allow_soft_placement=False, device_count={'CPU': 4})
  with tf1.Session(graph=graph, config=config) as session:
    session.run(start.name)
    return [float(session.run([loss.name, train.name])[0]) for _ in range(6)
           ], control_inputs([placed])


def place(definition, fetches, cluster, edges):
  """Writes a random placement, with control edges or without."""
  # Initializers are left out, because a step does not run them.
  step = graph_def_io.read(
      source_graph.SourceGraph('step', pruning.needed(definition, fetches), (),
                               fetches))
  whole = graph_def_io.read(
      source_graph.SourceGraph('whole', definition, (), fetches))
  cluster = resolve.resolve(cluster)
  simulated = simulator.Simulator(cluster)
  number = {name: i for i, name in enumerate(whole.names)}
  ops = [number[name] for name in step.names]
  for seed in range(20):  # Until control edges gain.
    devices = registry.create('random').place(
        placer.Problem(whole, cluster, simulated, seed)).devices
    placed = placement.Placement(devices[ops], cluster)
    found = {
        'none': [], 'order':
            control_edges.control_edges(step, placed, simulated).control_edges,
        'across':
            across(step, placed.devices)
    }
    if len(found['order']):
      break
  return graph_def_io.write(
      definition,
      placement.Placement(devices, cluster).device_strings(),
      [(ops[a], ops[b]) for a, b in found[edges]])


def across(step, devices):
  """Returns edges between ops of different devices, by topological order."""
  may = orderable.orderable(step)
  ops = [op for op in step.topological_order.tolist() if may[op]]
  return [(a, b) for a, b in zip(ops, ops[1:]) if devices[a] != devices[b]]


def main(cluster):
  lines = common.Lines()
  logging.getLogger('gdp_grappler').addHandler(lines)
  logging.getLogger('gdp_grappler').setLevel(logging.INFO)
  results = {}
  for make in (dense, lstm, branching, conditional):
    training = Training(make)
    # Two placements of the graphs with branches.
    for seed in (0, 1) if make in (branching, conditional) else (0,):
      fifo = training.losses('fifo', cluster, seed)
      lines.lines.clear()
      ordered = training.losses('critical_path', cluster, seed)
      results[f'{make.__name__} {seed}'] = {
          'fifo': fifo, 'ordered': ordered, 'lines': lines.lines[:]
      }
  fifo = v1_losses('none', cluster)
  for name, edges in (('session', 'order'), ('across', 'across')):
    results[name] = {'fifo': fifo, 'ordered': v1_losses(edges, cluster)}
  common.finish(**results)


if __name__ == '__main__':
  main(sys.argv[1])
