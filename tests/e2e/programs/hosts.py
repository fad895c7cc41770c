"""Trains over two servers, with and without placement.

A user's program: it does not import this package.

  python hosts.py MODE ADDRESS ADDRESS PROCESS

PROCESS is the process id of the second host, a TensorFlow server.
"""

import os
import signal
import sys
import time

import common
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
# Spreads ops over all devices, even if the step becomes slower.
_SPREAD = {'placer': 'round_robin', 'keep_best': False, 'guard': False}
_LAYERS, _UNITS, _BATCH, _STEPS = 3, 16, 8, 6


def numbers(*shape):
  return np.random.default_rng(0).random(shape, np.float32)


def fit(option, callbacks=(), epochs=1):
  """Returns the losses, and the devices of the variables."""
  if os.environ.get('TF_USE_LEGACY_KERAS'):
    import tf_keras as keras
  else:
    import keras
  common.set_option(option)
  keras.utils.set_random_seed(0)
  model = keras.Sequential([keras.Input((_UNITS,), batch_size=_BATCH)])
  for number in range(_LAYERS):
    model.add(keras.layers.Dense(_UNITS, 'tanh', name=f'layer_{number}'))
  model.compile(keras.optimizers.SGD(.1, .9), 'mse')
  losses = []

  class Losses(keras.callbacks.Callback):

    def on_train_batch_end(self, batch, logs=None):
      losses.append(logs['loss'])
      for callback in callbacks:
        callback(len(losses))

  data = numbers(_BATCH * _STEPS, _UNITS)
  model.fit(data, data[::-1], _BATCH, epochs, verbose=0, shuffle=False,
            callbacks=[Losses()])
  # Each variable of Keras 3 holds a variable of TensorFlow.
  variables = [getattr(v, '_value', v) for v in model.trainable_variables]
  return losses, sorted({v.device for v in variables})


def call(option):
  """Returns the value of a function."""
  common.set_option(option)

  @tf.function
  def function(x):
    for _ in range(20):
      x = tf.tanh(tf.matmul(x, x) / 4.)
    return x

  value = function(tf.constant(numbers(_UNITS, _UNITS))).numpy()
  assert value.any()
  return value.tolist()


def session(option, target):
  """Returns the losses of a v1 session, and the tasks that ran its ops."""
  common.set_option(option)
  with tf.Graph().as_default():
    x = v1.placeholder(tf.float32, (_BATCH, _UNITS))
    y = x
    for number in range(_LAYERS):
      w = v1.get_variable(
          f'w{number}', (_UNITS, _UNITS), use_resource=True,
          initializer=v1.constant_initializer(numbers(_UNITS, _UNITS)))
      y = tf.tanh(tf.matmul(y, w) / _UNITS)
    loss = tf.reduce_mean(tf.square(y - x))
    train = v1.train.GradientDescentOptimizer(.1).minimize(loss)
    metadata = v1.RunMetadata()
    trace = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
    with v1.Session(target) as running:
      running.run(v1.global_variables_initializer())
      feed = {x: numbers(_BATCH, _UNITS)}
      losses = [
          float(running.run([loss, train], feed, trace, metadata)[0])
          for _ in range(_STEPS)
      ]
  return losses, sorted({s.device for s in metadata.step_stats.dev_stats})


def late_reads(option, target):
  """Returns what a v1 session reads from buffers that its steps change."""
  common.set_option(option)
  with tf.Graph().as_default():
    x = v1.placeholder(tf.float32, (_UNITS, _UNITS))
    total = v1.get_variable('total', (_UNITS, _UNITS), use_resource=False,
                            initializer=v1.zeros_initializer())
    parts = [function(x) for function in (tf.sin, tf.cos, tf.tanh, tf.exp)]
    stack = tf.parallel_stack(parts)
    with tf.control_dependencies([v1.assign_add(total, tf.add_n(parts))]):
      late = [function(total) for function in (tf.sin, tf.cos, tf.tanh, tf.abs)]
    # Ops that a caller fetches do not move.
    fetches = [value + 1. for value in (stack, *late)]
    with v1.Session(target) as running:
      running.run(v1.global_variables_initializer())
      feed = {x: numbers(_UNITS, _UNITS)}
      return [[value.tolist() for value in running.run(fetches, feed)]
              for _ in range(_STEPS)]


def both(train, *args):
  """Returns the results without and with the option."""
  return {
      name: train(option, *args)
      for name, option in (('stock', False), ('placed', _SPREAD))
  }


def killed(addresses, process):
  """Returns the error of a fit whose second host dies, and its seconds."""
  tf.config.experimental_connect_to_host(addresses)

  def kill(steps):
    if steps == _STEPS:
      os.kill(process, signal.SIGKILL)

  start = time.perf_counter()
  try:
    fit(_SPREAD, [kill], epochs=100)
  except Exception as error:
    return {
        'error': type(error).__name__, 'module': type(error).__module__,
        'cause': repr(error.__cause__), 'seconds': time.perf_counter() - start
    }
  return {'error': ''}


def main(mode, *hosts):
  addresses, process = list(hosts[:2]), int(hosts[2])
  results = {}
  spec = tf.train.ClusterSpec({'worker': addresses})
  if mode == 'session':
    target = f'grpc://{addresses[0]}'
    results = both(session, target)
    results['late_reads'] = both(late_reads, target)
  elif mode == 'killed':
    results = killed(addresses, process)
  elif mode == 'left':
    tf.config.experimental_connect_to_host(addresses[:1])
    results = both(fit)
  elif mode == 'host':
    tf.config.experimental_connect_to_host(addresses)
    results = {'fit': both(fit)}
  elif mode == 'scope':
    tf.config.experimental_connect_to_host(addresses)
    with tf.device('/job:worker/task:1'):
      results = {'fit': both(fit)}
  elif mode == 'cluster':
    tf.config.experimental_connect_to_cluster(spec)
    results = {'fit': both(fit), 'function': both(call)}
  else:
    tf.config.experimental_connect_to_cluster(
        tf.distribute.cluster_resolver.SimpleClusterResolver(
            spec, master=f'grpc://{addresses[0]}', rpc_layer='grpc'))
    results = {'fit': both(fit), 'function': both(call)}
  common.set_option(False)
  common.finish(**results)


if __name__ == '__main__':
  main(*sys.argv[1:])
