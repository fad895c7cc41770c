"""Functions that call functions, and their gradients."""

from __future__ import annotations

import tensorflow as tf

from helpers.real_graphs import base


@base.function
def recomputed_gradients():
  w = base.w(3, 3)

  @tf.recompute_grad
  def block(x):
    return tf.tanh(tf.sin(x @ w) @ w)

  @tf.function
  def step(x=base.x(2, 3)):
    with tf.GradientTape() as tape:
      loss = tf.reduce_sum(block(block(x)))
    w.assign_sub(0.1 * tape.gradient(loss, w))
    return loss

  return step


@base.function
def custom_gradients():

  @tf.custom_gradient
  def clip(x):
    return tf.identity(x), lambda dy: tf.clip_by_value(dy, -0.1, 0.1)

  w = base.w(3, 3)

  @tf.function
  def step(x=base.x(2, 3)):
    with tf.GradientTape(persistent=True) as outer:
      with tf.GradientTape() as tape:
        loss = tf.reduce_sum(clip(tf.tanh(x @ w))**2)
      gradient = tape.gradient(loss, w)
      norm = tf.norm(gradient)
    w.assign_sub(0.1 * gradient)
    return norm, outer.gradient(norm, w), tf.stop_gradient(x) + 1.0

  return step


@base.function
def calls_left_in_the_graph():
  w = base.w(3, 3)

  @tf.function(experimental_attributes={'_noinline': True})
  def layer(x):
    return tf.tanh(x @ w) @ w, tf.shape(x)

  @tf.function(experimental_attributes={'_noinline': True})
  def pure(x):
    for _ in tf.range(2):
      x = tf.sin(x) * 2.0
    return x

  @tf.function
  def step(x=base.x(2, 3)):
    y, shape = layer(x)
    z, _ = layer(y * 2.0)
    return pure(z) + y, shape + 1

  return step


@base.function
def compiled_part():
  w = base.w(3, 3)

  @tf.function(jit_compile=True)
  def compiled(x):
    return tf.nn.softmax(tf.tanh(x @ w) @ w)

  @tf.function
  def step(x=base.x(2, 3)):
    return compiled(x @ w) * 2.0 + tf.sin(x)

  return step


@base.function
def raw_stacks():

  @tf.function
  def step(x=base.x(2, 3)):
    raw = tf.raw_ops
    stack = raw.StackV2(max_size=4, elem_type=tf.float32, stack_name='s')
    pushed = raw.StackPushV2(handle=stack, elem=x * 2.0)
    with tf.control_dependencies([pushed]):
      popped = raw.StackPopV2(handle=stack, elem_type=tf.float32)
    with tf.control_dependencies([popped]):
      raw.StackCloseV2(handle=stack)
    return popped + 1.0, tf.raw_ops.DeepCopy(x=x) * 2.0

  return step


@base.function
def tensor_arrays_v3():

  @tf.function
  def step(x=base.x(4, 3)):
    raw = tf.raw_ops
    array, flow = raw.TensorArrayV3(size=4, dtype=tf.float32)
    flow = raw.TensorArrayWriteV3(handle=array, index=0, value=x[0] * 2.0,
                                  flow_in=flow)
    flow = raw.TensorArrayScatterV3(handle=array, indices=[1, 2, 3],
                                    value=x[1:], flow_in=flow)
    size = raw.TensorArraySizeV3(handle=array, flow_in=flow)
    return raw.TensorArrayGatherV3(handle=array, indices=tf.range(4),
                                   flow_in=flow,
                                   dtype=tf.float32) + 1.0, size * 2

  return step


@base.function
def identities_of_many():

  @tf.function
  def step(x=base.x(3, 3), i=tf.constant(2)):
    a, b, c = tf.identity_n([x, i, tf.as_string(x)])
    with tf.control_dependencies([tf.sin(a), c]):
      d = tf.no_op()
    with tf.control_dependencies([d]):
      e = tf.group(a, b)
    with tf.control_dependencies([e]):
      f = tf.constant(2.0) * a
    return a, x, x, f, b * 2, c

  return step


@base.function
def batch_functions():

  @tf.function
  def step(x=base.x(2, 3)):
    y = tf.nondifferentiable_batch_function(1, 10,
                                            1)(lambda v: tf.sin(v) * 2.0)(x)
    return tf.ensure_shape(y, [2, 3]) @ tf.transpose(x)

  return step


@base.function
def critical_sections():
  section = tf.CriticalSection()
  v = tf.Variable(1.0)

  @tf.function
  def step():
    a = section.execute(lambda: v.assign_add(2.0).read_value() * 2.0)
    b = section.execute(lambda: v.assign(v * 3.0).read_value())
    return a + 1.0, b

  return step


@base.function
def queues():
  queue = tf.queue.FIFOQueue(10, [tf.float32], [[2]])

  @tf.function
  def step(x=base.x(2)):
    queue.enqueue(x * 2.0)
    queue.enqueue(x * 3.0)
    a = queue.dequeue() + 1.0
    return a, queue.dequeue() * a, queue.size() + 1

  return step


@base.function
def metrics():
  auc, mean = tf.keras.metrics.AUC(), tf.keras.metrics.Mean()
  accuracy = tf.keras.metrics.SparseCategoricalAccuracy()

  @tf.function
  def step(x=base.x(4, 3)):
    auc.update_state(x[:, 0] > 0.0, tf.nn.sigmoid(x[:, 1]))
    mean.update_state(x)
    accuracy.update_state(tf.constant([0, 1, 2, 0]), x)
    return auc.result(), mean.result(), accuracy.result()

  return step
