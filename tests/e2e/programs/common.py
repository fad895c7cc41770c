"""Common parts of the programs. Must not import this package."""

import collections
import gc
import json
import logging

# Imports make no garbage. With fewer collections they take a fifth less time.
gc.set_threshold(100_000)

import tensorflow as tf  # noqa: E402
from tensorflow.python.eager import context  # noqa: E402

gc.freeze()  # Excludes all imported objects from later garbage collections.

RANDOM = {'placer': 'random', 'keep_best': False}


class Lines(logging.Handler):
  """Keeps the lines that the package logs for the user."""

  def __init__(self):
    super().__init__()
    self.lines = []

  def emit(self, record):
    self.lines.append(record.getMessage())

  def take(self):
    """Returns the lines since the last call."""
    taken, self.lines = self.lines, []
    return taken


def make_devices(number=3):
  """Splits the CPU, before TensorFlow starts."""
  tf.config.set_logical_device_configuration(
      tf.config.list_physical_devices('CPU')[0],
      [tf.config.LogicalDeviceConfiguration()] * number)


def set_option(value):
  """Sets the option under test, and switches off the cache of decisions."""
  if value is True or isinstance(value, dict):
    value = {'cache': False, **({} if value is True else value)}
  tf.config.optimizer.set_experimental_options({'gdp_placement': value})


def compiled(**kwargs):
  """Returns a compiled Keras model of two layers, called "net"."""
  import keras
  keras.utils.set_random_seed(0)
  model = keras.Sequential([
      keras.Input((8,)),
      keras.layers.Dense(16, 'relu'),
      keras.layers.Dense(1)
  ], name='net')
  model.compile('sgd', 'mse', **kwargs)
  return model


def devices_used(function):
  """Returns a call's result, and the ops per device of its largest graph."""
  result, graphs = partition_graphs(function)
  return result, count(graphs)


def partition_graphs(function):
  """Returns the result of a call, and the GraphDefs of its largest graph.

  These are the partition graphs, which the executors really run. TensorFlow
  reports them once per instantiation, so earlier instantiations are dropped
  first.
  """
  context.context().clear_kernel_cache()
  context.context().enable_graph_collection()
  result = function()
  graphs = context.context().export_run_metadata().function_graphs
  context.context().disable_graph_collection()
  return result, max((graph.partition_graphs for graph in graphs),
                     key=lambda parts: sum(len(part.node) for part in parts),
                     default=[])


def count(graphs):
  """Returns the number of ops by device of GraphDefs, such as {'CPU:0': 12}."""
  return dict(
      collections.Counter(
          node.device.rsplit('device:')[-1] for graph in graphs
          for node in graph.node))


def finish(**results):
  """Prints the results for the test."""
  print(json.dumps(results))
