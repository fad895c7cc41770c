"""Loops and branches of functions, and the lists that they fill."""

from __future__ import annotations

import tensorflow as tf

from helpers.real_graphs import base


@base.function
def while_loop_gradient():
  w = base.w(3, 3)

  @tf.function
  def step(x=base.x(2, 3)):
    with tf.GradientTape() as tape:
      for _ in tf.range(4):
        x = tf.tanh(x @ w)
      loss = tf.reduce_sum(x**2)
    w.assign_sub(0.1 * tape.gradient(loss, w))
    return loss, x

  return step


@base.function
def nested_while_loops():
  w = base.w(3, 3)

  @tf.function
  def step(x=base.x(2, 3)):
    with tf.GradientTape() as tape:
      for i in tf.range(3):
        for _ in tf.range(i + 1):
          x = tf.sin(x @ w)
        x = x + tf.reduce_mean(x)
        for _ in tf.range(2):
          x = x * 1.1
      loss = tf.reduce_sum(x)
    w.assign_sub(0.1 * tape.gradient(loss, w))
    return loss

  return step


@base.function
def loops_one_after_another():
  w = base.w(3, 3)

  @tf.function
  def step(x=base.x(2, 3)):
    a = tf.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, tf.sin(a @ w)),
                      (0, x))[1]
    b = tf.while_loop(lambda i, _: i < 2, lambda i, b: (i + 1, b + a),
                      (0, x * 2))[1]
    return a + b, tf.reduce_sum(b @ w)

  return step


@base.function
def cond_in_while_in_cond():
  w = base.w(3, 3)

  @tf.function
  def step(x=base.x(2, 3)):
    with tf.GradientTape() as tape:
      if tf.reduce_sum(x) > -100.0:
        for i in tf.range(4):
          if i % 2 == 0:
            x = tf.tanh(x @ w)
          else:
            x = x - 0.5
      else:
        x = x @ (w + w)
      loss = tf.reduce_sum(x**2)
    w.assign_sub(0.1 * tape.gradient(loss, w))
    return loss

  return step


@base.function
def while_with_assignment():
  v, total = tf.Variable(1.0), tf.Variable(0.0)

  @tf.function
  def step():
    while v < 50.0:
      v.assign(v * 3.0)
      total.assign_add(tf.sqrt(v))
    v.assign(1.0)
    return total.read_value() * 2.0 + v

  return step


@base.function
def break_continue_and_random():

  @tf.function
  def step(x=base.x(4, 4)):
    generator = tf.constant([1, 2])
    for i in tf.range(10):
      if i == 2:
        continue
      if tf.reduce_sum(x) > 30.0:
        break
      x = x + tf.random.stateless_uniform([4, 4], generator + i)
    return x

  return step


@base.function
def map_fn_and_scan():
  w = base.w(3)

  @tf.function
  def step(x=base.x(4, 3)):
    with tf.GradientTape() as tape:
      a = tf.map_fn(lambda row: tf.reduce_sum(row * w), x)
      b = tf.scan(lambda carry, row: carry + row * w, x)
      c = tf.vectorized_map(lambda row: tf.nn.softmax(row * w), x)
      loss = tf.reduce_sum(a) + tf.reduce_sum(b) + tf.reduce_max(c)
    w.assign_sub(0.01 * tape.gradient(loss, w))
    return loss, b, c

  return step


@base.function
def tensor_arrays():

  @tf.function
  def step(x=base.x(4, 3)):
    array = tf.TensorArray(tf.float32, 4, dynamic_size=True)
    for i in tf.range(4):
      array = array.write(i, x[i] * 2.0)
    a = array.stack()
    rest = tf.TensorArray(tf.float32, 4, infer_shape=False).unstack(a)
    with tf.GradientTape() as tape:
      tape.watch(x)
      inner = tf.TensorArray(tf.float32, 4).unstack(x)
      b = tf.reduce_sum(inner.read(1) * inner.read(2)) + tf.reduce_sum(
          inner.gather([0, 3]))
    return a, rest.concat(), tape.gradient(b, x), array.size()

  return step


@base.function
def tensor_list_ops():

  @tf.function
  def step(x=base.x(4, 3)):
    raw = tf.raw_ops
    a = raw.TensorListFromTensor(tensor=x, element_shape=[3])
    b = raw.TensorListPushBack(input_handle=a, tensor=x[0] * 2.0)
    c = raw.TensorListSetItem(input_handle=b, index=1, item=x[2])
    d, last = raw.TensorListPopBack(input_handle=c, element_shape=[3],
                                    element_dtype=tf.float32)
    both = raw.TensorListConcatLists(input_a=d, input_b=a,
                                     element_dtype=tf.float32)
    return (last,
            raw.TensorListStack(input_handle=both, element_shape=[3],
                                element_dtype=tf.float32),
            raw.TensorListLength(input_handle=both) + 1, tf.add_n([x, x * 2.0]))

  return step


@base.function
def add_n_of_tensor_lists():

  @tf.function
  def step(x=base.x(4, 3)):
    with tf.GradientTape() as tape:
      tape.watch(x)
      out = 0.0
      for i in tf.range(3):
        out += tf.reduce_sum(tf.gather(x, i)**2) * tf.reduce_sum(x[i:])
      for i in tf.range(2):
        out += tf.reduce_sum(x[i] * x)
    return out, tape.gradient(out, x)

  return step


@base.function
def switch_case():
  w = base.w(3, 3)

  @tf.function
  def step(i=tf.constant(2), x=base.x(2, 3)):
    with tf.GradientTape() as tape:
      y = tf.switch_case(i, [lambda: x, lambda: x @ w, lambda: tf.sin(x @ w)])
      z = tf.case([(tf.equal(i, 1), lambda: x * 2.0),
                   (tf.equal(i, 2), lambda: x @ w)], default=lambda: x)
      loss = tf.reduce_sum(y * z)
    w.assign_sub(0.1 * tape.gradient(loss, w))
    return loss

  return step
