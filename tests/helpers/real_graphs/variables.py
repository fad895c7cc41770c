"""Variables of all kinds, and the order of their changes."""

from __future__ import annotations

import tempfile

import tensorflow as tf

from helpers.real_graphs import base


@base.function
def sparse_updates():
  table = base.w(6, 3)
  optimizer = tf.keras.optimizers.Adam()
  optimizer.build([table])

  @tf.function
  def step(ids=tf.constant([[1, 2], [2, 5]])):
    with tf.GradientTape() as tape:
      loss = tf.reduce_sum(tf.gather(table, ids)**2) + tf.reduce_sum(
          tf.nn.embedding_lookup(table, [1, 3]))
    gradient = tape.gradient(loss, table)
    optimizer.apply([gradient], [table])
    table.scatter_add(tf.IndexedSlices(tf.ones([2, 3]), tf.constant([0, 1])))
    return loss, gradient.values

  return step


@base.function
def order_by_control_edges():
  a, b = tf.Variable(1.0), tf.Variable(2.0)

  @tf.function
  def step():
    x = a * 3.0
    a.assign(b + x)
    y = a + 0.0
    b.assign_add(y)
    a.assign_add(b)
    with tf.control_dependencies([a.assign(a * 0.5)]):
      z = tf.identity(a.read_value())
    return x, y, z, b + a

  return step


@base.function
def variables_of_many_types():
  count = tf.Variable(3, dtype=tf.int32)
  big = tf.Variable(3, dtype=tf.int64)
  flag = tf.Variable(True)
  text = tf.Variable('a')
  half = tf.Variable(tf.ones([2, 2], tf.float16))
  brain = tf.Variable(tf.ones([2, 2], tf.bfloat16))
  wave = tf.Variable(tf.ones([2], tf.complex64))

  @tf.function
  def step():
    count.assign_add(1)
    big.assign(big * 2 + tf.cast(count, tf.int64))
    flag.assign(tf.logical_not(flag))
    text.assign(tf.strings.join([text, 'b']))
    half.assign(half @ half * 0.5)
    brain.assign(tf.cast(half, tf.bfloat16) + brain)
    wave.assign(wave * tf.complex(0.0, 1.0))
    return (count % 2, big, flag, text, half, tf.cast(brain, tf.float32),
            tf.math.imag(wave))

  return step


@base.function
def variables_passed_to_functions():
  a, b = base.w(3, 3), base.w(3, 3)

  @tf.autograph.experimental.do_not_convert
  def double(v, x):
    v.assign(v * 0.5)
    return x @ v

  inner = tf.function(double, experimental_attributes={'_noinline': True})
  inlined = tf.function(double)

  @tf.function
  def step(x=base.x(2, 3)):
    y = inner(a, x)
    z = inlined(b, x) + inlined(a, x)
    return y + inner(b, z), a + b

  return step


@base.function
def variable_in_cond():
  a, b = base.w(3, 3), base.w(3, 3)
  turn = tf.Variable(0)

  @tf.function
  def step(x=base.x(2, 3)):
    turn.assign_add(1)
    if turn % 2 == 0:
      y = x @ a
      b.assign_add(a)
    else:
      y = x @ b
      a.assign_sub(b)
    return y

  return step


@base.function
def partitioned_and_batched_reads():
  shards = [base.w(3, 2) for _ in range(3)]

  @tf.function
  def step(ids=tf.constant([0, 4, 8, 1])):
    rows = tf.nn.embedding_lookup(shards, ids)
    with tf.GradientTape() as tape:
      loss = tf.reduce_sum(tf.concat(shards, 0)**2)
    gradients = tape.gradient(loss, shards)
    for shard, gradient in zip(shards, gradients):
      shard.assign_sub(0.1 * gradient)
    return rows, loss

  return step


@base.function
def variables_on_several_devices():
  variables = []
  for i in range(3):
    with tf.device(f'CPU:{i}'):
      variables.append(base.w(3, 3))
  optimizer = tf.keras.optimizers.Adam()
  optimizer.build(variables)

  @tf.function
  def step(x=base.x(2, 3)):
    with tf.GradientTape() as tape:
      for _ in tf.range(2):
        for v in variables:
          x = tf.tanh(x @ v)
      loss = tf.reduce_sum(x**2)
    optimizer.apply(tape.gradient(loss, variables), variables)
    variables[1].assign(tf.add_n(variables))
    return loss

  return step


@base.function
def loop_over_devices():

  @tf.function
  def step(x=base.x(3, 3)):
    for _ in tf.range(3):
      with tf.device('CPU:1'):
        y = tf.sin(x @ x)
      with tf.device('CPU:2'):
        x = tf.cos(y @ x)
    return x, tf.reduce_sum(x) * 2.0

  return step


@base.function
def summaries_and_files():
  writer = tf.summary.create_file_writer(tempfile.mkdtemp())

  @tf.function
  def step(x=base.x(2, 3)):
    with writer.as_default(step=tf.constant(1, tf.int64)):
      tf.summary.scalar('a', tf.reduce_sum(x))
    start = tf.timestamp()
    size = tf.strings.length(tf.io.read_file('/dev/null'))
    return size + 1, tf.timestamp() - start >= 0.0, x * 2.0

  return step
