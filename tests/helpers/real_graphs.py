"""Small TensorFlow programs that make graphs of every kind.

Each function makes its variables and returns a `tf.function` (`FUNCTIONS`),
or builds a v1 graph and returns an initializer, what to fetch and what to feed
(`V1_GRAPHS`). All are deterministic after `tf.random.set_seed`.
"""

from __future__ import annotations

import os
import tempfile

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1

FUNCTIONS = {}
V1_GRAPHS = {}


def _function(make):
  FUNCTIONS[make.__name__] = make
  return make


def _v1(make):
  V1_GRAPHS[make.__name__] = make
  return make


def _x(*shape, dtype=np.float32):
  size = int(np.prod(shape))
  return tf.constant((np.arange(size) % 7 - 3).reshape(shape) / 4 + 0.1, dtype)


def _w(*shape, dtype=tf.float32):
  return tf.Variable(tf.cast(tf.random.normal(shape, stddev=0.5), dtype))


def _train(model, optimizer, x, y):
  """A custom training loop over a Keras model."""
  model(x)
  optimizer.build(model.trainable_variables)

  @tf.function
  def step():
    with tf.GradientTape() as tape:
      loss = tf.reduce_mean((model(x, training=True) - y)**2)
    variables = model.trainable_variables
    optimizer.apply(tape.gradient(loss, variables), variables)
    return loss

  return step


# Keras training steps.


@_function
def dense_adam():
  k = tf.keras
  model = k.Sequential([k.layers.Dense(8, 'relu'), k.layers.Dense(1)])
  return _train(model, k.optimizers.Adam(), _x(4, 8), _x(4, 1))


@_function
def cnn_batch_norm_momentum():
  k = tf.keras
  model = k.Sequential([
      k.layers.Conv2D(4, 3, activation='relu'),
      k.layers.BatchNormalization(),
      k.layers.MaxPooling2D(),
      k.layers.Dropout(0.3, seed=1),
      k.layers.Flatten(),
      k.layers.Dense(1)
  ])
  return _train(model, k.optimizers.SGD(0.01, 0.9), _x(2, 8, 8, 3), _x(2, 1))


@_function
def lstm_rmsprop():
  k = tf.keras
  model = k.Sequential([
      k.layers.LSTM(4, return_sequences=True),
      k.layers.GRU(4, reset_after=False),
      k.layers.Dense(1)
  ])
  return _train(model, k.optimizers.RMSprop(), _x(2, 5, 3), _x(2, 1))


@_function
def masked_embedding_lstm():
  k = tf.keras
  tokens = tf.constant([[1, 2, 3, 0], [4, 0, 0, 0]])
  model = k.Sequential([
      k.layers.Embedding(6, 3, mask_zero=True),
      k.layers.LSTM(3),
      k.layers.Dense(1)
  ])
  return _train(model, k.optimizers.Adagrad(), tokens, _x(2, 1))


@_function
def attention_adamw_ema():
  k = tf.keras
  x = k.Input((5, 4))
  h = k.layers.MultiHeadAttention(2, 2)(x, x)
  h = k.layers.LayerNormalization()(x + h)
  model = k.Model(x, k.layers.Dense(1)(k.layers.Flatten()(h)))
  optimizer = k.optimizers.AdamW(use_ema=True, clipnorm=1.0)
  return _train(model, optimizer, _x(2, 5, 4), _x(2, 1))


# Loops and branches.


@_function
def while_loop_gradient():
  w = _w(3, 3)

  @tf.function
  def step(x=_x(2, 3)):
    with tf.GradientTape() as tape:
      for _ in tf.range(4):
        x = tf.tanh(x @ w)
      loss = tf.reduce_sum(x**2)
    w.assign_sub(0.1 * tape.gradient(loss, w))
    return loss, x

  return step


@_function
def nested_while_loops():
  w = _w(3, 3)

  @tf.function
  def step(x=_x(2, 3)):
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


@_function
def loops_one_after_another():
  w = _w(3, 3)

  @tf.function
  def step(x=_x(2, 3)):
    a = tf.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, tf.sin(a @ w)),
                      (0, x))[1]
    b = tf.while_loop(lambda i, _: i < 2, lambda i, b: (i + 1, b + a),
                      (0, x * 2))[1]
    return a + b, tf.reduce_sum(b @ w)

  return step


@_function
def cond_in_while_in_cond():
  w = _w(3, 3)

  @tf.function
  def step(x=_x(2, 3)):
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


@_function
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


@_function
def break_continue_and_random():

  @tf.function
  def step(x=_x(4, 4)):
    generator = tf.constant([1, 2])
    for i in tf.range(10):
      if i == 2:
        continue
      if tf.reduce_sum(x) > 30.0:
        break
      x = x + tf.random.stateless_uniform([4, 4], generator + i)
    return x

  return step


@_function
def map_fn_and_scan():
  w = _w(3)

  @tf.function
  def step(x=_x(4, 3)):
    with tf.GradientTape() as tape:
      a = tf.map_fn(lambda row: tf.reduce_sum(row * w), x)
      b = tf.scan(lambda carry, row: carry + row * w, x)
      c = tf.vectorized_map(lambda row: tf.nn.softmax(row * w), x)
      loss = tf.reduce_sum(a) + tf.reduce_sum(b) + tf.reduce_max(c)
    w.assign_sub(0.01 * tape.gradient(loss, w))
    return loss, b, c

  return step


@_function
def tensor_arrays():

  @tf.function
  def step(x=_x(4, 3)):
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


@_function
def tensor_list_ops():

  @tf.function
  def step(x=_x(4, 3)):
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


@_function
def add_n_of_tensor_lists():

  @tf.function
  def step(x=_x(4, 3)):
    with tf.GradientTape() as tape:
      tape.watch(x)
      out = 0.0
      for i in tf.range(3):
        out += tf.reduce_sum(tf.gather(x, i)**2) * tf.reduce_sum(x[i:])
      for i in tf.range(2):
        out += tf.reduce_sum(x[i] * x)
    return out, tape.gradient(out, x)

  return step


@_function
def switch_case():
  w = _w(3, 3)

  @tf.function
  def step(i=tf.constant(2), x=_x(2, 3)):
    with tf.GradientTape() as tape:
      y = tf.switch_case(i, [lambda: x, lambda: x @ w, lambda: tf.sin(x @ w)])
      z = tf.case([(tf.equal(i, 1), lambda: x * 2.0),
                   (tf.equal(i, 2), lambda: x @ w)], default=lambda: x)
      loss = tf.reduce_sum(y * z)
    w.assign_sub(0.1 * tape.gradient(loss, w))
    return loss

  return step


# Variables.


@_function
def sparse_updates():
  table = _w(6, 3)
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


@_function
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


@_function
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


@_function
def variables_passed_to_functions():
  a, b = _w(3, 3), _w(3, 3)

  @tf.autograph.experimental.do_not_convert
  def double(v, x):
    v.assign(v * 0.5)
    return x @ v

  inner = tf.function(double, experimental_attributes={'_noinline': True})
  inlined = tf.function(double)

  @tf.function
  def step(x=_x(2, 3)):
    y = inner(a, x)
    z = inlined(b, x) + inlined(a, x)
    return y + inner(b, z), a + b

  return step


@_function
def variable_in_cond():
  a, b = _w(3, 3), _w(3, 3)
  turn = tf.Variable(0)

  @tf.function
  def step(x=_x(2, 3)):
    turn.assign_add(1)
    if turn % 2 == 0:
      y = x @ a
      b.assign_add(a)
    else:
      y = x @ b
      a.assign_sub(b)
    return y

  return step


@_function
def partitioned_and_batched_reads():
  shards = [_w(3, 2) for _ in range(3)]

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


@_function
def variables_on_several_devices():
  variables = []
  for i in range(3):
    with tf.device(f'CPU:{i}'):
      variables.append(_w(3, 3))
  optimizer = tf.keras.optimizers.Adam()
  optimizer.build(variables)

  @tf.function
  def step(x=_x(2, 3)):
    with tf.GradientTape() as tape:
      for _ in tf.range(2):
        for v in variables:
          x = tf.tanh(x @ v)
      loss = tf.reduce_sum(x**2)
    optimizer.apply(tape.gradient(loss, variables), variables)
    variables[1].assign(tf.add_n(variables))
    return loss

  return step


@_function
def loop_over_devices():

  @tf.function
  def step(x=_x(3, 3)):
    for _ in tf.range(3):
      with tf.device('CPU:1'):
        y = tf.sin(x @ x)
      with tf.device('CPU:2'):
        x = tf.cos(y @ x)
    return x, tf.reduce_sum(x) * 2.0

  return step


@_function
def summaries_and_files():
  writer = tf.summary.create_file_writer(tempfile.mkdtemp())

  @tf.function
  def step(x=_x(2, 3)):
    with writer.as_default(step=tf.constant(1, tf.int64)):
      tf.summary.scalar('a', tf.reduce_sum(x))
    start = tf.timestamp()
    size = tf.strings.length(tf.io.read_file('/dev/null'))
    return size + 1, tf.timestamp() - start >= 0.0, x * 2.0

  return step


# Ops of the host.


@_function
def python_functions():
  w = _w(3, 3)

  @tf.function
  def step(x=_x(2, 3)):
    y = tf.numpy_function(lambda a: np.sin(a), [x @ w], tf.float32)
    y.set_shape([2, 3])
    z = tf.py_function(lambda a: a * 2.0, [y @ w], tf.float32)
    z.set_shape([2, 3])
    return tf.reduce_sum(z @ w), y

  return step


@_function
def strings():

  @tf.function
  def step(text=tf.constant(['a b', 'c', 'd e f']), x=_x(3)):
    parts = tf.strings.split(text)
    ids = tf.strings.to_hash_bucket_fast(parts.values, 5)
    numbers = tf.strings.to_number(tf.strings.as_string(x * 2.0))
    ints = tf.io.decode_raw(tf.constant('abcd'), tf.uint8)
    return (tf.strings.reduce_join(text), tf.one_hot(ids, 5) * 2.0, numbers + x,
            tf.cast(ints, tf.float32) / 2.0, tf.strings.length(text) + 1,
            tf.reshape(text,
                       [1, 3]), tf.where(x > 0.0, text, tf.strings.upper(text)),
            tf.concat([text, text], 0)[1:4])

  return step


@_function
def lookup_tables():
  initializer = tf.lookup.KeyValueTensorInitializer(['a', 'b'], [1, 2])
  table = tf.lookup.StaticHashTable(initializer, -1)
  mutable = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, 0.0)

  @tf.function
  def step(text=tf.constant(['a', 'c', 'b']), x=_x(3)):
    ids = table.lookup(text)
    keys = tf.cast(ids, tf.int64)
    mutable.insert(keys, x + mutable.lookup(keys))
    return ids * 2, mutable.lookup(keys) * 2.0, table.size() + 1

  return step


@_function
def print_and_assert():

  @tf.function
  def step(x=_x(2, 3)):
    tf.debugging.assert_near(x, x + 0.0)
    tf.Assert(tf.reduce_sum(x) < 100.0, [x])
    tf.print('sum', tf.reduce_sum(x), output_stream='file:///dev/null')
    y = tf.debugging.check_numerics(tf.sin(x), 'y')
    tf.debugging.assert_shapes([(y, (2, 3))])
    return y @ tf.transpose(x)

  return step


@_function
def dataset_iterator():
  dataset = tf.data.Dataset.range(100).map(
      lambda i: tf.cast(i, tf.float32)).batch(4)
  iterator = iter(dataset.repeat())
  w = _w(4, 4)

  @tf.function
  def step():
    x = tf.reshape(next(iterator), [1, 4])
    y = iterator.get_next_as_optional()
    z = tf.cond(y.has_value(), lambda: y.get_value(), lambda: tf.zeros([4]))
    return x @ w, z * 2.0

  return step


@_function
def dataset_in_function():
  w = _w(4, 4)

  @tf.function
  def step(n=tf.constant(8, tf.int64)):
    total = tf.zeros([1, 4])
    for batch in tf.data.Dataset.range(n).batch(4, drop_remainder=True):
      total += tf.reshape(tf.cast(batch, tf.float32), [1, 4]) @ w
    reduced = tf.data.Dataset.range(5).reduce(tf.constant(0, tf.int64),
                                              lambda a, b: a + b)
    return total, reduced * 2

  return step


@_function
def optionals():

  @tf.function
  def step(x=_x(2, 3)):
    option = tf.experimental.Optional.from_value(x * 2.0)
    empty = tf.experimental.Optional.empty(tf.TensorSpec([2, 3], tf.float32))
    chosen = tf.cond(tf.reduce_sum(x) > 0, lambda: option, lambda: empty)
    return tf.where(chosen.has_value(), option.get_value(), x) + 1.0

  return step


@_function
def images_and_bytes():

  @tf.function
  def step(x=_x(8, 8, 3)):
    image = tf.cast(tf.clip_by_value(x * 100.0, 0.0, 255.0), tf.uint8)
    decoded = tf.io.decode_png(tf.io.encode_png(image))
    small = tf.image.resize(decoded, [4, 4])
    bright = tf.image.adjust_saturation(tf.nn.sigmoid(x), 0.5)
    flipped = tf.image.stateless_random_flip_left_right(x, (1, 2))
    boxes = tf.constant([[0., 0., 1., 1.], [0., 0., .9, 1.], [.5, .5, 1., 1.]])
    keep = tf.image.non_max_suppression(boxes, tf.constant([.9, .8, .7]), 3)
    crop = tf.image.crop_and_resize(x[None], boxes, [0, 0, 0], [2, 2])
    return (small, tf.image.rgb_to_hsv(bright), flipped * 2.0, keep + 1, crop,
            tf.image.total_variation(x),
            tf.image.ssim(tf.tile(x, [2, 2, 1]), tf.tile(x + 0.1, [2, 2, 1]),
                          1.0))

  return step


@_function
def parse_and_files():
  feature = tf.train.Feature(float_list=tf.train.FloatList(value=[1., 2.]))
  record = tf.train.Example(features=tf.train.Features(
      feature={'f': feature})).SerializeToString()

  @tf.function
  def step(records=tf.constant([record, record])):
    parsed = tf.io.parse_example(records,
                                 {'f': tf.io.FixedLenFeature([2], tf.float32)})
    sparse = tf.io.parse_example(records,
                                 {'f': tf.io.VarLenFeature(tf.float32)})['f']
    return parsed['f'] * 2.0, tf.sparse.to_dense(sparse) + 1.0

  return step


# Random numbers.


@_function
def stateless_random():

  @tf.function
  def step(seed=tf.constant([1, 2])):
    more = tf.random.split(seed, 2)
    return (tf.random.stateless_normal([3], more[0])
            + tf.random.stateless_uniform([3], more[1]),
            tf.random.stateless_categorical(tf.ones([2, 3]), 4, seed) + 1,
            tf.random.experimental.stateless_shuffle(tf.range(5), seed) * 2)

  return step


@_function
def stateful_random_with_seed():

  @tf.function
  def step(x=_x(4, 4)):
    return (tf.nn.dropout(x, 0.5, seed=3), tf.random.normal([3], seed=4) * 2.0,
            tf.random.shuffle(x, seed=5) @ x,
            tf.random.uniform([2], 0, 9, tf.int32, seed=6) + 1)

  return step


@_function
def random_generators():
  generator = tf.random.Generator.from_seed(7)

  @tf.function
  def step(x=_x(4, 4)):
    a = generator.normal([4, 4]) @ x
    b = generator.uniform([3], 0, 100, tf.int64) + 1
    for _ in tf.range(2):
      a += generator.truncated_normal([4, 4])
    return a, b, generator.binomial([3], 5.0, 0.5)

  return step


# Types and layouts of all kinds.


@_function
def types_of_all_kinds():

  @tf.function
  def step(x=_x(4, 4)):
    i = tf.cast(x * 4.0, tf.int32)
    long = tf.cast(i, tf.int64)
    small = tf.cast(i, tf.int8)
    half, brain = tf.cast(x, tf.float16), tf.cast(x, tf.bfloat16)
    double = tf.cast(x, tf.float64)
    wave = tf.complex(x, -x)
    return (i * 2 + 1, i @ i, tf.reduce_sum(i, 0), tf.bitwise.bitwise_xor(i, 3),
            long // 2, tf.cumsum(long), small + small, tf.argmax(x, 1) + 1,
            half @ half, tf.cast(brain @ brain, tf.float32), double / 3.0,
            tf.linalg.inv(double + 9 * tf.eye(4, dtype=tf.float64)),
            tf.abs(tf.signal.fft2d(wave)), tf.math.real(wave @ wave),
            tf.logical_or(x > 0.0, i > 0), tf.reduce_any(x > 0.0, 1),
            tf.unique(tf.reshape(i, [-1]))[0] + 1, tf.where(x > 0.0),
            tf.cast(tf.cast(i, tf.uint8), tf.int32) + 1,
            tf.bitcast(i, tf.float32), tf.cast(tf.sort(i), tf.bool))

  return step


@_function
def shapes_and_sizes():

  @tf.function(input_signature=[
      tf.TensorSpec([None, None], tf.float32),
      tf.TensorSpec(None, tf.float32)
  ])
  def step(x, y):
    rows, n = tf.shape(x)[0], tf.size(x) + tf.rank(x)
    z = tf.reshape(x, [tf.shape(x)[1], rows]) @ x
    if tf.rank(y) == 1:
      y = tf.expand_dims(y, 0)
    return (z, n * 2, tf.fill([rows, 2], 1.0) * 2.0, tf.range(n) + rows,
            tf.pad(x, [[0, rows], [0, 0]]), tf.tile(y, [rows, 1]) * 2.0,
            tf.split(x, [1, -1], 0)[1] + 1.0, tf.broadcast_to(y, [rows, 3]),
            tf.slice(x, [0, 0], [rows - 1, -1]) * 2.0,
            tf.boolean_mask(x, x > 0.0) * 2.0, x[::-1, rows - 3:] + 1.0,
            tf.transpose(x,
                         tf.range(tf.rank(x))[::-1]) * 2.0)

  return lambda: step(_x(4, 4), _x(3))


@_function
def ragged_and_sparse():

  @tf.function
  def step(x=_x(3, 3)):
    ragged = tf.RaggedTensor.from_row_lengths(x[:, 0] * 2.0, [1, 0, 2])
    dense = tf.reduce_sum(tf.cast(ragged.to_tensor(), tf.float32), 1)
    sparse = tf.sparse.from_dense(tf.nn.relu(x))
    segments = tf.math.segment_sum(x, [0, 0, 1])
    return (dense, ragged.row_lengths() + 1,
            tf.sparse.sparse_dense_matmul(sparse, x),
            tf.sparse.reduce_sum(sparse, 0) * 2.0,
            tf.sparse.to_dense(tf.sparse.add(sparse, sparse)), segments * 2.0,
            tf.math.unsorted_segment_max(x, [1, 0, 1], 2))

  return step


@_function
def ragged_variants():

  @tf.function
  def step(x=_x(3, 3)):
    ragged = tf.RaggedTensor.from_row_lengths(x[:, 0], [1, 0, 2])
    mapped = tf.map_fn(lambda row: tf.reduce_sum(row) * 2.0, ragged,
                       fn_output_signature=tf.float32)
    total = 0.0
    for i in tf.range(3):
      total += tf.reduce_sum(ragged[i])
    return mapped, total

  return step


@_function
def sparse_matrices():
  from tensorflow.python.ops.linalg.sparse import sparse_csr_matrix_ops as csr

  @tf.function
  def step(x=_x(3, 3)):
    a = csr.dense_to_csr_sparse_matrix(x, tf.where(x > 0.0))
    b = csr.sparse_matrix_transpose(a, tf.float32)
    c = csr.sparse_matrix_sparse_mat_mul(a, b, tf.float32)
    return (csr.csr_sparse_matrix_to_dense(c, tf.float32) * 2.0,
            csr.sparse_matrix_mat_mul(a, x) + 1.0, csr.sparse_matrix_nnz(c) + 1)

  return step


@_function
def quantized():

  @tf.function
  def step(x=_x(4, 4)):
    q = tf.quantization.quantize(x, -1.0, 1.0, tf.qint8)
    u = tf.quantization.quantize(x, -1.0, 1.0, tf.quint8)
    product = tf.raw_ops.QuantizedMatMul(a=u.output, b=u.output, min_a=-1.0,
                                         max_a=1.0, min_b=-1.0, max_b=1.0,
                                         Toutput=tf.qint32)
    back = tf.quantization.dequantize(q.output, q.output_min, q.output_max)
    fake = tf.quantization.fake_quant_with_min_max_vars(x, -1.0, 1.0)
    return (back @ x,
            tf.quantization.dequantize(product.out, product.min_out,
                                       product.max_out, 'MIN_FIRST'),
            fake + 1.0, tf.quantization.quantize_and_dequantize_v2(x, -1., 1.))

  return step


@_function
def linear_algebra():

  @tf.function
  def step(x=_x(4, 4)):
    spd = x @ tf.transpose(x) + 5.0 * tf.eye(4)
    with tf.GradientTape() as tape:
      tape.watch(x)
      y = tf.linalg.logdet(x @ tf.transpose(x) + 5.0 * tf.eye(4))
    return (tf.linalg.cholesky(spd) * 2.0, tf.linalg.eigvalsh(spd) + 1.0,
            tf.linalg.svd(x, compute_uv=False), tf.linalg.det(spd) * 2.0,
            tf.linalg.solve(spd, x), tf.einsum('ij,kj->ik', x, x),
            tf.linalg.band_part(x, 1, 0) + 1.0, tf.linalg.expm(x * 0.1),
            tape.gradient(y, x), tf.nn.top_k(x, 2)[0] * 2.0)

  return step


@_function
def losses_of_sequences():

  @tf.function
  def step(x=_x(5, 2, 4)):
    with tf.GradientTape() as tape:
      tape.watch(x)
      labels = tf.constant([[1, 2], [2, 1]])
      a = tf.nn.ctc_loss(labels, x, [2, 2], [5, 5], blank_index=0)
      b = tf.nn.sparse_softmax_cross_entropy_with_logits(
          tf.constant([1, 0]), x[0])
      decoded = tf.nn.ctc_greedy_decoder(x, [5, 5])[0][0]
      sampled = tf.nn.log_poisson_loss(x[0], x[1])
      loss = tf.reduce_sum(a) + tf.reduce_sum(b) + tf.reduce_sum(sampled)
    return loss, tape.gradient(loss, x), tf.sparse.to_dense(decoded) + 1

  return step


# Functions and gradients.


@_function
def recomputed_gradients():
  w = _w(3, 3)

  @tf.recompute_grad
  def block(x):
    return tf.tanh(tf.sin(x @ w) @ w)

  @tf.function
  def step(x=_x(2, 3)):
    with tf.GradientTape() as tape:
      loss = tf.reduce_sum(block(block(x)))
    w.assign_sub(0.1 * tape.gradient(loss, w))
    return loss

  return step


@_function
def custom_gradients():

  @tf.custom_gradient
  def clip(x):
    return tf.identity(x), lambda dy: tf.clip_by_value(dy, -0.1, 0.1)

  w = _w(3, 3)

  @tf.function
  def step(x=_x(2, 3)):
    with tf.GradientTape(persistent=True) as outer:
      with tf.GradientTape() as tape:
        loss = tf.reduce_sum(clip(tf.tanh(x @ w))**2)
      gradient = tape.gradient(loss, w)
      norm = tf.norm(gradient)
    w.assign_sub(0.1 * gradient)
    return norm, outer.gradient(norm, w), tf.stop_gradient(x) + 1.0

  return step


@_function
def calls_left_in_the_graph():
  w = _w(3, 3)

  @tf.function(experimental_attributes={'_noinline': True})
  def layer(x):
    return tf.tanh(x @ w) @ w, tf.shape(x)

  @tf.function(experimental_attributes={'_noinline': True})
  def pure(x):
    for _ in tf.range(2):
      x = tf.sin(x) * 2.0
    return x

  @tf.function
  def step(x=_x(2, 3)):
    y, shape = layer(x)
    z, _ = layer(y * 2.0)
    return pure(z) + y, shape + 1

  return step


@_function
def compiled_part():
  w = _w(3, 3)

  @tf.function(jit_compile=True)
  def compiled(x):
    return tf.nn.softmax(tf.tanh(x @ w) @ w)

  @tf.function
  def step(x=_x(2, 3)):
    return compiled(x @ w) * 2.0 + tf.sin(x)

  return step


@_function
def raw_stacks():

  @tf.function
  def step(x=_x(2, 3)):
    raw = tf.raw_ops
    stack = raw.StackV2(max_size=4, elem_type=tf.float32, stack_name='s')
    pushed = raw.StackPushV2(handle=stack, elem=x * 2.0)
    with tf.control_dependencies([pushed]):
      popped = raw.StackPopV2(handle=stack, elem_type=tf.float32)
    with tf.control_dependencies([popped]):
      raw.StackCloseV2(handle=stack)
    return popped + 1.0, tf.raw_ops.DeepCopy(x=x) * 2.0

  return step


@_function
def tensor_arrays_v3():

  @tf.function
  def step(x=_x(4, 3)):
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


@_function
def identities_of_many():

  @tf.function
  def step(x=_x(3, 3), i=tf.constant(2)):
    a, b, c = tf.identity_n([x, i, tf.as_string(x)])
    with tf.control_dependencies([tf.sin(a), c]):
      d = tf.no_op()
    with tf.control_dependencies([d]):
      e = tf.group(a, b)
    with tf.control_dependencies([e]):
      f = tf.constant(2.0) * a
    return a, x, x, f, b * 2, c

  return step


@_function
def batch_functions():

  @tf.function
  def step(x=_x(2, 3)):
    y = tf.nondifferentiable_batch_function(1, 10,
                                            1)(lambda v: tf.sin(v) * 2.0)(x)
    return tf.ensure_shape(y, [2, 3]) @ tf.transpose(x)

  return step


@_function
def critical_sections():
  section = tf.CriticalSection()
  v = tf.Variable(1.0)

  @tf.function
  def step():
    a = section.execute(lambda: v.assign_add(2.0).read_value() * 2.0)
    b = section.execute(lambda: v.assign(v * 3.0).read_value())
    return a + 1.0, b

  return step


@_function
def queues():
  queue = tf.queue.FIFOQueue(10, [tf.float32], [[2]])

  @tf.function
  def step(x=_x(2)):
    queue.enqueue(x * 2.0)
    queue.enqueue(x * 3.0)
    a = queue.dequeue() + 1.0
    return a, queue.dequeue() * a, queue.size() + 1

  return step


@_function
def metrics():
  auc, mean = tf.keras.metrics.AUC(), tf.keras.metrics.Mean()
  accuracy = tf.keras.metrics.SparseCategoricalAccuracy()

  @tf.function
  def step(x=_x(4, 3)):
    auc.update_state(x[:, 0] > 0.0, tf.nn.sigmoid(x[:, 1]))
    mean.update_state(x)
    accuracy.update_state(tf.constant([0, 1, 2, 0]), x)
    return auc.result(), mean.result(), accuracy.result()

  return step


# Graphs of TensorFlow 1: (fetches, {placeholder: value}).


def _v1_model(x, y, use_resource):
  with tf1.variable_scope('model', use_resource=use_resource):
    w = tf1.get_variable('w', [3, 4], initializer=_initializer(1))
    b = tf1.get_variable('b', [4], initializer=tf1.zeros_initializer())
    u = tf1.get_variable('u', [4, 1], initializer=_initializer(2))
  hidden = tf1.nn.relu(tf1.matmul(x, w) + b)
  return tf1.reduce_mean((tf1.matmul(hidden, u) - y)**2)


def _initializer(seed):
  return tf1.random_normal_initializer(stddev=0.5, seed=seed)


def _data():
  x = tf1.placeholder(tf.float32, [None, 3], 'x')
  y = tf1.placeholder(tf.float32, [None, 1], 'y')
  return x, y, {x: _np(4, 3), y: _np(4, 1)}


def _np(*shape):
  return (np.arange(np.prod(shape)) % 7 - 3).reshape(shape).astype('f') / 4


def _v1_training(name, optimizer, use_resource):

  def make():
    x, y, feed = _data()
    loss = _v1_model(x, y, use_resource)
    step = tf1.train.get_or_create_global_step()
    train = optimizer().minimize(loss, global_step=step)
    with tf1.control_dependencies([train]):
      after = tf1.identity(loss)
      count = step.read_value() + 1
    return [loss, train, after, count], feed

  make.__name__ = name
  return _v1(make)


for _kind, _use_resource in (('ref', False), ('resource', True)):
  for _title, _optimizer in (
      ('sgd', lambda: tf1.train.GradientDescentOptimizer(0.1)),
      ('adam', lambda: tf1.train.AdamOptimizer(0.1)),
      ('momentum', lambda: tf1.train.MomentumOptimizer(0.1, 0.9)),
      ('adagrad', lambda: tf1.train.AdagradOptimizer(0.1)),
      ('rmsprop', lambda: tf1.train.RMSPropOptimizer(0.1, centered=True)),
      ('ftrl', lambda: tf1.train.FtrlOptimizer(0.1))):
    _v1_training(f'{_kind}_{_title}', _optimizer, _use_resource)


@_v1
def ref_assignments_in_order():
  a = tf1.Variable([1.0, 2.0], use_resource=False)
  b = tf1.Variable([3.0, 4.0], use_resource=False)
  first = tf1.assign(a, a.read_value() * 2.0)
  with tf1.control_dependencies([first]):
    second = tf1.assign_add(b, a.read_value())
  with tf1.control_dependencies([second]):
    third = tf1.scatter_update(a, [0], [7.0])
  with tf1.control_dependencies([third]):
    return [
        a.read_value() + b.read_value(),
        tf1.identity(third) * 2.0,
        tf1.is_variable_initialized(a)
    ], {}


@_v1
def ref_switch_and_merge():
  a = tf1.Variable([1.0, 2.0], use_resource=False)
  flag = tf1.placeholder(tf.bool, [], 'flag')
  low, high = tf.raw_ops.RefSwitch(data=a._ref(), pred=flag)
  value, index = tf.raw_ops.RefMerge(inputs=[low, high])
  before = tf1.identity(value) + 1.0
  with tf1.control_dependencies([before]):
    updated = tf.raw_ops.AssignAdd(ref=high, value=[1.0, 1.0])
  return [before, index, tf1.identity(updated)], {flag: True}


@_v1
def partitioned_variables():
  x, y, feed = _data()
  with tf1.variable_scope('p', partitioner=tf1.fixed_size_partitioner(3),
                          use_resource=False):
    w = tf1.get_variable('w', [3, 2], initializer=_initializer(1))
  table = tf1.get_variable('t', [6, 2], initializer=_initializer(2),
                           partitioner=tf1.fixed_size_partitioner(2))
  rows = tf1.nn.embedding_lookup(table, [1, 5, 2, 1])
  loss = tf1.reduce_sum(
      tf1.matmul(x, tf1.convert_to_tensor(w)) * rows) + tf1.reduce_sum(y)
  train = tf1.train.AdamOptimizer(0.1).minimize(loss)
  return [loss, train], feed


@_v1
def sparse_gradients_of_references():
  table = tf1.Variable(_np(6, 3), use_resource=False)
  rows = tf1.gather(table, tf1.constant([1, 2, 2]))
  loss = tf1.reduce_sum(rows**2)
  first = tf1.train.AdamOptimizer(0.1).minimize(loss)
  with tf1.control_dependencies([first]):
    again = tf1.reduce_sum(tf1.gather(table, tf1.constant([0, 2]))**2)
    second = tf1.train.MomentumOptimizer(0.1, 0.9).minimize(again)
  return [loss, first, again, second], {}


@_v1
def colocated_with_ops():
  x, _, feed = _data()
  a = tf1.sin(x)
  with tf1.colocate_with(a):
    b = tf1.cos(x) + 1.0
  v = tf1.get_variable('v', [3], initializer=_initializer(1))
  with tf1.colocate_with(v):
    c = tf1.reduce_sum(b, 0) * 2.0
  with tf1.colocate_with(c, ignore_existing=True):
    d = c + 3.0
  return [a, b, d, v.assign_add(c)], {k: feed[k] for k in feed if k is x}


@_v1
def frames_with_gradient():
  x, _, feed = _data()
  w = tf1.get_variable('w', [3, 3], initializer=_initializer(1),
                       use_resource=False)
  out = _with_frames(
      lambda: tf1.while_loop(lambda i, _: i < 3, lambda i, h:
                             (i + 1, tf1.tanh(tf1.matmul(h, w))), [0, x]))[1]
  loss = tf1.reduce_sum(out**2)
  train = tf1.train.AdamOptimizer(0.1)
  gradients = _with_frames(lambda: train.compute_gradients(loss, [w]))
  return [loss, train.apply_gradients(gradients)
         ], {k: feed[k] for k in feed if k is x}


@_v1
def nested_frames_and_branches():
  x, _, feed = _data()
  w = tf1.get_variable('w', [3, 3], initializer=_initializer(1))

  def inner(i, h):
    return tf1.while_loop(lambda j, _: j < i, lambda j, h:
                          (j + 1, tf1.sin(tf1.matmul(h, w))), [0, h])[1]

  def body(i, h):
    h = tf1.cond(tf1.equal(i % 2, 0), lambda: inner(i, h), lambda: h - 0.5)
    return i + 1, h * tf1.cond(tf1.reduce_sum(h) > 0, lambda: 1.0, lambda: 2.0)

  def make():
    out = tf1.while_loop(lambda i, _: i < 4, body, [0, x])[1]
    return out, tf1.gradients(out, [w])[0]

  out, gradient = _with_frames(make)
  return [out, gradient,
          w.assign_sub(0.1 * gradient)], {k: feed[k] for k in feed if k is x}


@_v1
def loops_feeding_loops():
  x, _, feed = _data()

  def loop(value, turns, other=0.0):
    return tf1.while_loop(lambda i, _: i < turns, lambda i, h:
                          (i + 1, tf1.sin(h) + other), [0, value],
                          parallel_iterations=2)[1]

  def make():
    a = loop(x, 3)
    b = loop(x * 2.0, 2, a)
    c = loop(a + b, 2, tf1.reduce_sum(b))
    return a, b, c, tf1.gradients(c, [x])[0]

  return list(_with_frames(make)), {k: feed[k] for k in feed if k is x}


@_v1
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

  return list(_with_frames(make)), {x: _np(2, 5, 3), lengths: [5, 3]}


def _with_frames(make):
  """Runs with the control flow of TensorFlow 1: frames, Switch and Merge."""
  was_on = tf1.control_flow_v2_enabled()
  tf1.disable_control_flow_v2()
  try:
    return make()
  finally:
    if was_on:
      tf1.enable_control_flow_v2()


@_v1
def branches_with_assignments():
  a = tf1.Variable(1.0, use_resource=False)
  b = tf1.Variable(2.0, use_resource=True)
  flag = tf1.placeholder(tf.bool, [], 'flag')
  out = _with_frames(
      lambda: tf1.cond(flag, lambda: tf1.assign_add(a, 2.0) * 2.0, lambda: b.
                       assign_add(a.read_value()) + 1.0))
  with tf1.control_dependencies([out]):
    return [out, a.read_value() + b.read_value()], {flag: False}


@_v1
def functional_control_flow():
  x, _, feed = _data()
  w = tf1.get_variable('w', [3, 3], initializer=_initializer(1),
                       use_resource=True)
  out = tf1.while_loop(lambda i, _: i < 3, lambda i, h:
                       (i + 1, tf1.tanh(tf1.matmul(h, w))), [0, x])[1]
  out = tf1.cond(tf1.reduce_sum(out) > 0, lambda: out * 2.0, lambda: out @ w)
  gradient = tf1.gradients(out, [w])[0]
  return [out,
          w.assign_sub(0.1 * gradient)], {k: feed[k] for k in feed if k is x}


@_v1
def functions_in_a_session():
  x, _, feed = _data()
  w = tf1.get_variable('w', [3, 3], initializer=_initializer(1),
                       use_resource=True)

  @tf.function
  def layer(v):
    for _ in tf.range(2):
      v = tf.tanh(v @ w)
    return v

  out = layer(x) + layer(x * 2.0)
  return [out, tf1.gradients(out, [w])[0] * 2.0
         ], {k: feed[k] for k in feed if k is x}


@_v1
def queues_and_enqueues():
  queue = tf1.FIFOQueue(10, [tf.float32, tf.int32], [[2], []])
  shuffled = tf1.RandomShuffleQueue(10, 0, [tf.float32], [[2]], seed=1)
  put = queue.enqueue([[1.0, 2.0], 3])
  with tf1.control_dependencies([put]):
    value, number = queue.dequeue()
  with tf1.control_dependencies([shuffled.enqueue([value * 2.0])]):
    again = shuffled.dequeue()
  with tf1.control_dependencies([again]):
    size = queue.size() + 1
  return [value + 1.0, number * 2, again + 1.0, size], {}


@_v1
def tables_in_a_session():
  table = tf1.lookup.StaticHashTable(
      tf1.lookup.KeyValueTensorInitializer(['a', 'b'], np.array([1, 2],
                                                                np.int64)), -1)
  text = tf1.placeholder(tf.string, [None], 'text')
  return [table.lookup(text) * 2,
          tf1.strings.length(text) + 1], {text: ['a', 'z']}


@_v1
def temporary_variables():
  x, _, feed = _data()
  raw = tf.raw_ops
  reference = raw.TemporaryVariable(shape=[3], dtype=tf.float32, var_name='t')
  assigned = raw.Assign(ref=reference, value=tf1.reduce_sum(x, 0))
  added = raw.AssignAdd(ref=assigned, value=[1.0, 2.0, 3.0])
  final = raw.DestroyTemporaryVariable(ref=added, var_name='t')
  return [final * 2.0,
          tf1.accumulate_n([x, x * 2.0,
                            tf1.sin(x)])], {k: feed[k] for k in feed if k is x}


@_v1
def stacks_of_references():
  x, _, feed = _data()
  raw = tf.raw_ops
  stack = raw.Stack(elem_type=tf.float32, stack_name='s')
  pushed = raw.StackPush(handle=stack, elem=x)
  with tf1.control_dependencies([pushed]):
    popped = raw.StackPop(handle=stack, elem_type=tf.float32)
  with tf1.control_dependencies([popped]):
    closed = raw.StackClose(handle=stack)
  return [popped * 2.0, closed], {k: feed[k] for k in feed if k is x}


@_v1
def conditional_accumulators():
  x, _, feed = _data()
  accumulator = tf1.ConditionalAccumulator(tf.float32, [3])
  put = accumulator.apply_grad(tf1.reduce_sum(x, 0), local_step=99)
  with tf1.control_dependencies([put]):
    feeds = {k: feed[k] for k in feed if k is x}
    return [accumulator.take_grad(1) * 2.0], feeds


@_v1
def barriers_and_staging():
  x, _, feed = _data()
  area = tf.raw_ops
  put = area.Stage(values=[x * 2.0], shared_name='area')
  with tf1.control_dependencies([put]):
    out = area.Unstage(dtypes=[tf.float32], shared_name='area')
  return [out[0] + 1.0], {k: feed[k] for k in feed if k is x}


@_v1
def one_shot_iterators():
  dataset = tf1.data.Dataset.range(20).map(
      lambda i: tf.cast(i, tf.float32)).batch(2)
  a = tf1.data.make_one_shot_iterator(dataset).get_next()
  initializable = tf1.data.make_initializable_iterator(dataset)
  tf1.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS,
                        initializable.initializer)
  return [a * 2.0, initializable.get_next() + 1.0], {}


@_v1
def moving_averages():
  x, y, feed = _data()
  loss = _v1_model(x, y, True)
  average = tf1.train.ExponentialMovingAverage(0.9)
  train = tf1.train.GradientDescentOptimizer(0.1).minimize(loss)
  with tf1.control_dependencies([train]):
    update = average.apply(tf1.trainable_variables() + [loss])
  with tf1.control_dependencies([update]):
    return [loss, average.average(loss).read_value() + 1.0], feed


@_v1
def saved_and_restored():
  w = tf1.get_variable('w', [3], initializer=_initializer(1),
                       use_resource=False)
  u = tf1.get_variable('u', [3], initializer=_initializer(2), use_resource=True)
  saver = tf1.train.Saver([w, u])
  path = saver.saver_def.filename_tensor_name
  graph = tf1.get_default_graph()
  save = graph.get_tensor_by_name(saver.saver_def.save_tensor_name)
  with tf1.control_dependencies([save]):
    changed = tf1.group(w.assign_add([1., 1., 1.]), u.assign_add([1., 2., 3.]))
  with tf1.control_dependencies([changed]):
    after = [w.read_value() + 1.0, u.read_value() * 2.0]
  return [tf1.strings.length(save) > 0, *after], {
      graph.get_tensor_by_name(path):
          os.path.join(tempfile.mkdtemp(), 'checkpoint')
  }


@_v1
def python_functions_in_a_session():
  x, _, feed = _data()
  out = tf1.py_func(np.sin, [x * 2.0], tf.float32)
  return [out + 1.0, tf1.Print(x, [x], summarize=0) * 2.0
         ], {k: feed[k] for k in feed if k is x}


@_v1
def summaries_and_metrics():
  x, y, feed = _data()
  loss = _v1_model(x, y, True)
  tf1.summary.scalar('loss', loss)
  tf1.summary.histogram('x', x)
  _, update = tf1.metrics.mean(loss)
  tf1.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS,
                        tf1.local_variables_initializer())
  return [tf1.strings.length(tf1.summary.merge_all()) > 0, update], feed
