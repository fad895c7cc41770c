"""What the programs share. Importing it must not import anything of ours."""

import collections
import gc
import json
import logging

# What is imported is no garbage, and looking for some costs a fifth of that.
gc.set_threshold(100_000)

import tensorflow as tf  # noqa: E402
from tensorflow.python.eager import context  # noqa: E402

gc.freeze()  # Nor has a collection to look at it again.

RANDOM = {'placer': 'random', 'keep_best': False}


class Lines(logging.Handler):
  """Keeps what the user is told."""

  def __init__(self):
    super().__init__()
    self.lines = []

  def emit(self, record):
    self.lines.append(record.getMessage())

  def take(self):
    """What was said since the last time."""
    taken, self.lines = self.lines, []
    return taken


def make_devices(number=3):
  """Splits the CPU, before TensorFlow starts."""
  tf.config.set_logical_device_configuration(
      tf.config.list_physical_devices('CPU')[0],
      [tf.config.LogicalDeviceConfiguration()] * number)


def set_option(value):
  """Sets the option under test; what is decided is for this process alone."""
  if value is True or isinstance(value, dict):
    value = {'cache': False, **({} if value is True else value)}
  tf.config.optimizer.set_experimental_options({'gdp_placement': value})


def devices_used(function):
  """Result of a call, and the ops per device of the biggest graph it ran.

  Counts what the executors were really given: the partition graphs. They are
  told once per instantiation, so what was instantiated before is forgotten.
  """
  context.context().clear_kernel_cache()
  context.context().enable_graph_collection()
  result = function()
  graphs = context.context().export_run_metadata().function_graphs
  context.context().disable_graph_collection()
  counts = [count(graph.partition_graphs) for graph in graphs]
  return result, max(counts, key=lambda c: sum(c.values()), default={})


def count(graphs):
  """{'CPU:0': 12} for GraphDefs."""
  return dict(
      collections.Counter(
          node.device.rsplit('device:')[-1] for graph in graphs
          for node in graph.node))


def finish(**results):
  """Hands the results to the test."""
  print(json.dumps(results))
