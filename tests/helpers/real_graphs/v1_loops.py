"""Graphs of TensorFlow 1: frames and branches."""

from __future__ import annotations

import tensorflow as tf

from helpers.real_graphs import base

tf1 = tf.compat.v1


@base.v1_graph
def frames_with_gradient():
  x, _, feed = base.fed_pair()
  w = tf1.get_variable('w', [3, 3], initializer=base.initializer(1),
                       use_resource=False)
  out = base.with_frames(
      lambda: tf1.while_loop(lambda i, _: i < 3, lambda i, h:
                             (i + 1, tf1.tanh(tf1.matmul(h, w))), [0, x]))[1]
  loss = tf1.reduce_sum(out**2)
  train = tf1.train.AdamOptimizer(0.1)
  gradients = base.with_frames(lambda: train.compute_gradients(loss, [w]))
  return [loss, train.apply_gradients(gradients)
         ], {k: feed[k] for k in feed if k is x}


@base.v1_graph
def nested_frames_and_branches():
  x, _, feed = base.fed_pair()
  w = tf1.get_variable('w', [3, 3], initializer=base.initializer(1))

  def inner(i, h):
    return tf1.while_loop(lambda j, _: j < i, lambda j, h:
                          (j + 1, tf1.sin(tf1.matmul(h, w))), [0, h])[1]

  def body(i, h):
    h = tf1.cond(tf1.equal(i % 2, 0), lambda: inner(i, h), lambda: h - 0.5)
    return i + 1, h * tf1.cond(tf1.reduce_sum(h) > 0, lambda: 1.0, lambda: 2.0)

  def make():
    out = tf1.while_loop(lambda i, _: i < 4, body, [0, x])[1]
    return out, tf1.gradients(out, [w])[0]

  out, gradient = base.with_frames(make)
  return [out, gradient,
          w.assign_sub(0.1 * gradient)], {k: feed[k] for k in feed if k is x}


@base.v1_graph
def loops_feeding_loops():
  x, _, feed = base.fed_pair()

  def loop(value, turns, other=0.0):
    return tf1.while_loop(lambda i, _: i < turns, lambda i, h:
                          (i + 1, tf1.sin(h) + other), [0, value],
                          parallel_iterations=2)[1]

  def make():
    a = loop(x, 3)
    b = loop(x * 2.0, 2, a)
    c = loop(a + b, 2, tf1.reduce_sum(b))
    return a, b, c, tf1.gradients(c, [x])[0]

  return list(base.with_frames(make)), {k: feed[k] for k in feed if k is x}


@base.v1_graph
def dynamic_rnn():
  x = tf1.placeholder(tf.float32, [2, None, 3], 'x')
  lengths = tf1.placeholder(tf.int32, [2], 'lengths')

  def make():
    cell = tf.keras.layers.SimpleRNNCell(4, kernel_initializer='ones')
    cell.build((2, 3))
    array = tf1.TensorArray(tf.float32,
                            tf1.shape(x)[1]).unstack(tf1.transpose(
                                x, [1, 0, 2]))
    out = tf1.TensorArray(tf.float32, tf1.shape(x)[1])

    def body(t, state, out):
      new = tf1.tanh(
          tf1.matmul(array.read(t), tf1.ones([3, 4]))
          + tf1.matmul(state, 0.1 * tf1.ones([4, 4])))
      new = tf1.where(t < lengths, new, state)
      return t + 1, new, out.write(t, new)

    _, state, out = tf1.while_loop(lambda t, *_: t < tf1.shape(x)[1], body,
                                   [0, tf1.zeros([2, 4]), out])
    return out.stack(), state, tf1.gradients(state, [x])[0]

  return list(base.with_frames(make)), {x: base.fed(2, 5, 3), lengths: [5, 3]}


@base.v1_graph
def branches_with_assignments():
  a = tf1.Variable(1.0, use_resource=False)
  b = tf1.Variable(2.0, use_resource=True)
  flag = tf1.placeholder(tf.bool, [], 'flag')
  out = base.with_frames(
      lambda: tf1.cond(flag, lambda: tf1.assign_add(a, 2.0) * 2.0, lambda: b.
                       assign_add(a.read_value()) + 1.0))
  with tf1.control_dependencies([out]):
    return [out, a.read_value() + b.read_value()], {flag: False}


@base.v1_graph
def functional_control_flow():
  x, _, feed = base.fed_pair()
  w = tf1.get_variable('w', [3, 3], initializer=base.initializer(1),
                       use_resource=True)
  out = tf1.while_loop(lambda i, _: i < 3, lambda i, h:
                       (i + 1, tf1.tanh(tf1.matmul(h, w))), [0, x])[1]
  out = tf1.cond(tf1.reduce_sum(out) > 0, lambda: out * 2.0, lambda: out @ w)
  gradient = tf1.gradients(out, [w])[0]
  return [out,
          w.assign_sub(0.1 * gradient)], {k: feed[k] for k in feed if k is x}
