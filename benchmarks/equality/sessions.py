"""Programs of TensorFlow 1."""

from __future__ import annotations

from typing import Any, Callable

import tensorflow as tf

from benchmarks.equality import base

tf1 = tf.compat.v1
_STEPS = 5  # Steps of a program.


def _trained(build: Callable[[Any, Any], Any], *shape: int,
             resources: bool = False) -> base.Numbers:
  """Returns the losses of some steps, and the variables afterwards.

  Args:
    build: Makes a loss and a training op from placeholders x and y.
    *shape: Shape of a row of x.
    resources: Whether variables are resources.
  """
  rows, classes = base.data(24, *shape)
  with tf.Graph().as_default():
    tf1.set_random_seed(1)
    with tf1.variable_scope('', use_resource=resources):
      x = tf1.placeholder(tf.float32, (None, *shape))
      y = tf1.placeholder(tf.int64, (None,))
      loss, step = build(x, y)
    every = tf1.global_variables()
    with tf1.Session() as session:
      _initialize(session)
      losses = [
          session.run([loss, step], {x: rows[i:], y: classes[i:]})[0]
          for i in range(_STEPS)
      ]
      return losses, session.run(every)


def _initialize(session: Any) -> None:
  """Initializes variables first, because averages copy their values."""
  first = tf1.trainable_variables()
  rest = [v for v in tf1.global_variables() if all(v is not w for w in first)]
  for variables in (first, rest):
    session.run(tf1.variables_initializer(variables))


def _layer(x: Any, units: int, name: str) -> Any:
  weights = tf1.get_variable(
      name, (x.shape[-1], units),
      initializer=tf1.random_normal_initializer(stddev=.3, seed=len(name)))
  return tf.matmul(x, weights) + tf1.get_variable(
      f'{name}_bias', (units,), initializer=tf1.zeros_initializer())


def _perceptron(x: Any, y: Any) -> Any:
  loss = base.loss(y, _layer(tf.nn.relu(_layer(x, 16, 'one')), 3, 'two'))
  return loss, tf1.train.AdamOptimizer(.05).minimize(loss)


@base.program()
def session_references() -> base.Numbers:
  """Trains reference variables."""
  return _trained(_perceptron, 8)


@base.program()
def session_resources() -> base.Numbers:
  """Trains resource variables."""
  return _trained(_perceptron, 8, resources=True)


@base.program()
def session_averages() -> base.Numbers:
  """Update ops, moving averages, a decaying learning rate, dropout."""

  def build(x: Any, y: Any) -> Any:
    hidden = tf.nn.dropout(tf.nn.relu(_layer(x, 16, 'one')), rate=.2, seed=3)
    mean = tf1.get_variable('mean', (16,), trainable=False,
                            initializer=tf1.zeros_initializer())
    loss = base.loss(y, _layer(hidden - mean, 3, 'two'))
    with tf.control_dependencies([loss]):
      update = tf1.assign(mean, .9 * mean + .1 * tf.reduce_mean(hidden, 0))
    count = tf1.train.get_or_create_global_step()
    rate = tf1.train.exponential_decay(.1, count, 2, .9)
    averages = tf1.train.ExponentialMovingAverage(.9, count)
    with tf.control_dependencies([update]):
      step = tf1.train.MomentumOptimizer(rate, .9).minimize(loss, count)
    with tf.control_dependencies([step]):
      return loss, averages.apply(tf1.trainable_variables())

  return _trained(build, 8)


@base.program()
def session_recurrent() -> base.Numbers:
  """A cell in a loop of TensorFlow 1, and its gradient."""

  def build(x: Any, y: Any) -> Any:
    cell = tf1.get_variable(
        'cell', (12, 8),
        initializer=tf1.random_normal_initializer(stddev=.3, seed=4))

    def body(i: Any, state: Any) -> Any:
      both = tf.concat([x[:, i], state], axis=1)
      return i + 1, tf.tanh(tf.matmul(both, cell))

    start = 0, tf.zeros((tf.shape(x)[0], 8))
    _, state = tf1.while_loop(lambda i, _: i < 5, body, start)
    loss = base.loss(y, _layer(state, 3, 'out'))
    return loss, tf1.train.RMSPropOptimizer(.01).minimize(loss)

  return _trained(build, 5, 4, resources=True)


@base.program()
def session_monitored() -> base.Numbers:
  """A `MonitoredSession`, and conditions."""
  rows, classes = base.data(24, 8)
  with tf.Graph().as_default():
    tf1.set_random_seed(1)
    x, y = tf.constant(rows), tf.constant(classes)
    count = tf1.train.create_global_step()
    hidden = _layer(x, 16, 'one')
    hidden = tf1.cond(tf.equal(count % 2, 0), lambda: tf.nn.relu(hidden),
                      lambda: tf.tanh(hidden))
    loss = base.loss(y, _layer(hidden, 3, 'two'))
    step = tf1.train.AdagradOptimizer(.1).minimize(loss, count)
    every = tf1.trainable_variables()
    losses, weights = [], []
    with tf1.train.MonitoredTrainingSession() as session:
      for _ in range(_STEPS):
        losses.append(session.run([loss, step])[0])
        weights = session.run(every)
  return losses, weights
