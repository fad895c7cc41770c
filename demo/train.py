"""An ordinary Keras program: trains InceptionV3 for a few steps.

Nothing here knows about device placement; the environment switches it on.
Prints one JSON line with the losses and where the ops really ran.
"""

import collections
import json
import os
import sys
from typing import Mapping

import keras
import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2
from tensorflow.core.protobuf import rewriter_config_pb2
from tensorflow.python.eager import context

BATCH_SIZE = 8  # Images per step.
STEPS = 2  # Steps of the fit.


def main(num_devices: int, in_order: bool) -> None:
  """Trains on logical CPUs, and prints what the training took.

  Args:
    num_devices: Number of logical CPUs.
    in_order: Whether sums are added in the order in which they are written.
      TensorFlow's memory optimizer, which then does not run, lets InceptionV3
      add gradients in the order of arrival, which other devices change.
  """
  if in_order:
    _switch_memory_optimizer_off()
  tf.config.set_logical_device_configuration(
      tf.config.list_physical_devices('CPU')[0],
      [tf.config.LogicalDeviceConfiguration()] * num_devices)
  keras.utils.set_random_seed(0)
  model = keras.applications.InceptionV3(weights=None, classes=10,
                                         classifier_activation=None,
                                         input_shape=(299, 299, 3))
  model.compile('adam',
                keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                jit_compile=False)
  random = np.random.default_rng(0)
  images = random.random((BATCH_SIZE * STEPS, 299, 299, 3), np.float32)
  labels = random.integers(0, 10, BATCH_SIZE * STEPS)
  losses = _Losses()
  context.enable_graph_collection()
  model.fit(images, labels, batch_size=BATCH_SIZE, shuffle=False, verbose=0,
            callbacks=[losses])
  json.dump({'losses': losses.values, 'ops': _ops_per_device()}, sys.stdout)
  print()


def _switch_memory_optimizer_off() -> None:
  """Switches it off for this process. `tf.config.optimizer` has no option."""
  as_it_is = context.Context.config.fget

  def config(self: context.Context) -> config_pb2.ConfigProto:
    result = as_it_is(self)
    result.graph_options.rewrite_options.memory_optimization = (
        rewriter_config_pb2.RewriterConfig.NO_MEM_OPT)
    return result

  context.Context.config = property(config)


class _Losses(keras.callbacks.Callback):
  """Keeps the loss of every step."""

  def __init__(self) -> None:
    super().__init__()
    self.values: list[float] = []

  def on_train_batch_end(self, batch: int,
                         logs: Mapping[str, float] | None = None) -> None:
    del batch
    assert logs is not None
    self.values.append(float(logs['loss']))


def _ops_per_device() -> dict[str, int]:
  """Ops in the partitions of the largest graph that ran.

  What TensorFlow executes, after its placer, Grappler and the partitioner;
  the transfers that the partitioner adds are left out.
  """
  graphs = context.export_run_metadata().function_graphs
  counts = [
      collections.Counter(
          node.device.rsplit('device:', 1)[-1]
          for part in graph.partition_graphs for node in part.node
          if node.op not in ('_Send', '_Recv', '_HostSend', '_HostRecv'))
      for graph in graphs
  ]
  return dict(sorted(max(counts, key=lambda c: c.total()).items()))


if __name__ == '__main__':
  main(int(os.environ.get('DEMO_DEVICES', '1')),
       os.environ.get('DEMO_IN_ORDER') == '1')
