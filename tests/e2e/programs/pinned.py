"""Device scopes in a tf.function, its loops and branches, and a Keras layer."""

import common
import numpy as np
import tensorflow as tf

import gdp_grappler

common.make_devices()
import keras  # noqa: E402

X = tf.constant(np.eye(8, dtype=np.float32))
SEEN = {}


def listen():
  """Records the graphs that the pass receives, and places no graph."""
  from gdp_grappler.plugin import optimizer
  from gdp_grappler.plugin import outcome as outcome_lib

  def optimize(source, settings, **unused_options):
    SEEN[source.name] = source.graph_def
    return outcome_lib.Outcome(None, '')

  optimizer.optimize = optimize


@tf.function
def inner(x):
  return tf.math.asin(x)


@tf.function
def function(x):
  x = tf.matmul(x, x + 1.)
  with gdp_grappler.pin('cpu:1'):
    x = tf.matmul(x, tf.cos(x))
    i = tf.constant(0)
    while i < 3:
      x = tf.tanh(tf.matmul(x, x))
      i += 1
    if tf.reduce_sum(x) > 0.:
      x = tf.sinh(x)
    with gdp_grappler.pin('/job:localhost/replica:0/task:0/device:CPU:2'):
      x = tf.atan(x)
    with gdp_grappler.leave_alone():
      x = tf.math.erf(x)
    x = inner(x)
  with gdp_grappler.leave_alone():
    x = tf.math.softplus(x)
  return tf.reduce_sum(tf.exp(x))


@tf.function
def small(x):
  with gdp_grappler.pin('CPU:1'):
    return tf.math.asinh(x) + 1.


class Pinned(keras.layers.Layer):

  def call(self, x):
    with gdp_grappler.pin('CPU:2'):
      return tf.nn.elu(x)


def attributes(name, op_types):
  """Returns {op type: [pin, whether left alone]} of one graph."""
  return {
      node.op: [
          node.attr['_gdp_pin'].s.decode(), node.attr['_gdp_leave_alone'].b
      ] for node in SEEN[name].node if node.op in op_types
  }


def fit():
  model = keras.Sequential([
      keras.layers.Input((8,)),
      keras.layers.Dense(8),
      Pinned(),
      keras.layers.Dense(4)
  ])
  model.compile('adam', 'mse')
  model.fit(np.ones((8, 8)), np.ones((8, 4)), verbose=0)


def main():
  with gdp_grappler.pin('CPU:1'), gdp_grappler.leave_alone():
    eager = float(tf.reduce_sum(tf.sin(X)))
  listen()
  common.set_option(True)
  function(X)
  small(X)
  fit()
  with gdp_grappler.pin('CPU:1'):
    tf.function(lambda x: sum(tf.sin(x + i) for i in range(9)))(X)
  common.finish(
      eager=eager, pinned_layer=attributes('multi_step_on_iterator', ('Elu',)),
      function=attributes(
          'function',
          ('Cos', 'Tanh', 'Sinh', 'Atan', 'Erf', 'Asin', 'Softplus', 'Exp')),
      small=attributes('small', ('Asinh',)),
      traced_inside=attributes('<lambda>', ('Sin',)))


if __name__ == '__main__':
  main()
