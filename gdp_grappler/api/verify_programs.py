"""Three small programs that `verifying` runs, without and with placement.

Each program runs in a process of its own with the plugin, on two logical
devices of the CPU or of the first GPU. It returns its losses and the devices
that ran its ops.
"""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context

from gdp_grappler.plugin import switch

# Steps of a program, or epochs of its `fit`. A few losses show a wrong update.
_STEPS = 4
# The placer spreads ops over all devices, even if that is slower.
_SPREAD = {'placer': 'random', 'keep_best': False, 'min_ops': 4}
# Memory of each half of a card, for the small programs and for libraries.
_GPU_MB = 1024
# Losses of a run, and the devices that had ops.
_Run = tuple[list[float], list[str]]


def has_gpu() -> bool:
  """Whether TensorFlow finds a GPU."""
  return bool(tf.config.list_physical_devices('GPU'))


def keras_fit(kind: str) -> tuple[_Run, _Run]:
  """Runs Keras' `fit`, whose variables move."""
  import keras
  make_devices(kind)
  rng = np.random.default_rng(0)
  inputs = rng.normal(size=(32, 8)).astype(np.float32)
  targets = rng.normal(size=(32, 1)).astype(np.float32)

  def fit() -> list[float]:
    keras.utils.set_random_seed(0)
    model = keras.Sequential([
        keras.Input((8,)),
        keras.layers.Dense(32, 'relu'),
        keras.layers.Dense(32, 'tanh'),
        keras.layers.Dense(1)
    ])
    model.compile('adam', 'mse', jit_compile=False)
    history = model.fit(inputs, targets, epochs=_STEPS, batch_size=16,
                        shuffle=False, verbose=0)
    return [float(loss) for loss in history.history['loss']]

  return _collected(fit, False), _collected(fit, True)


def training_loop(kind: str) -> tuple[_Run, _Run]:
  """Runs a `tf.function` with a tape and its own updates."""
  make_devices(kind)
  inputs = tf.constant(
      np.random.default_rng(0).normal(size=(16, 8)), tf.float32)

  def train() -> list[float]:
    rng = np.random.default_rng(1)
    weights = [
        tf.Variable(rng.normal(size=(8, 8)) / 4, dtype=tf.float32)
        for _ in range(4)
    ]

    @tf.function(jit_compile=False)
    def step() -> tf.Tensor:
      with tf.GradientTape() as tape:
        hidden = inputs
        for weight in weights:
          hidden = tf.nn.relu(hidden @ weight) + tf.sin(hidden)
        loss = tf.reduce_mean(tf.square(hidden))
      for weight, gradient in zip(weights, tape.gradient(loss, weights)):
        weight.assign_sub(.01 * gradient)
      return loss

    return [float(step()) for _ in range(_STEPS)]

  return _collected(train, False), _collected(train, True)


def session(kind: str) -> tuple[_Run, _Run]:
  """Runs a v1 graph in a `Session`."""
  if kind == 'GPU':
    tf.config.experimental.enable_op_determinism()
  return _session(kind, False), _session(kind, True)


def _session(kind: str, placed: bool) -> _Run:
  tf1 = tf.compat.v1
  _set_placement(placed)
  with tf.Graph().as_default():
    inputs = tf1.placeholder(tf.float32, (4, 8))
    hidden = inputs
    for i in range(3):
      weight = tf1.get_variable(f'w{i}', use_resource=True,
                                initializer=np.eye(8, dtype=np.float32))
      hidden = tf.nn.relu(hidden @ weight + .1)
    loss = tf.reduce_mean(tf.square(hidden - 1.))
    train = tf1.train.GradientDescentOptimizer(.1).minimize(loss)
    options = tf1.RunOptions(output_partition_graphs=True)
    metadata = tf1.RunMetadata()
    values = np.linspace(0, 1, 32, dtype=np.float32).reshape(4, 8)
    with tf1.Session(config=session_config(kind)) as running:
      running.run(tf1.global_variables_initializer())
      losses = [
          float(
              running.run([loss, train], {inputs: values}, options,
                          metadata)[0]) for _ in range(_STEPS)
      ]
  return losses, _devices(metadata.partition_graphs)


def session_config(kind: str) -> tf.compat.v1.ConfigProto:
  """Returns the config of a session with two devices of a kind."""
  if kind == 'CPU':
    return tf.compat.v1.ConfigProto(device_count={'CPU': 2})
  config = tf.compat.v1.ConfigProto()
  config.gpu_options.visible_device_list = '0'
  halves = config.gpu_options.experimental.virtual_devices.add()
  halves.memory_limit_mb.extend([_GPU_MB] * 2)
  return config


def make_devices(kind: str) -> None:
  """Cuts the first device of a kind in two, and hides other GPUs."""
  first = tf.config.list_physical_devices(kind)[0]
  half = tf.config.LogicalDeviceConfiguration(
      memory_limit=None if kind == 'CPU' else _GPU_MB)
  if kind == 'GPU':
    tf.config.set_visible_devices(first, kind)
    tf.config.experimental.enable_op_determinism()
  tf.config.set_logical_device_configuration(first, [half] * 2)


def _set_placement(on: bool) -> None:
  tf.config.optimizer.set_experimental_options(
      {switch.NAME: _SPREAD if on else False})


def _collected(run: Callable[[], list[float]], placed: bool) -> _Run:
  """Runs a program, and returns its losses and the devices of its ops."""
  _set_placement(placed)
  eager: Any = context.context()
  eager.enable_graph_collection()
  losses = run()
  tf.identity(1.)  # TensorFlow hands graphs over only after a later op.
  graphs = eager.export_run_metadata().function_graphs
  eager.disable_graph_collection()
  largest = max(
      graphs,
      key=lambda graph: sum(len(part.node) for part in graph.partition_graphs))
  return losses, _devices(largest.partition_graphs)


def _devices(parts: Any) -> list[str]:
  """Returns short names of the devices that have an op."""
  return sorted({
      node.device.rsplit('device:')[-1] for part in parts for node in part.node
      if node.device
  })
