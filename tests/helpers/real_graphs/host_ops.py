"""Ops that only a host runs: files, strings, tables, data sets."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from helpers.real_graphs import base


@base.function
def python_functions():
  w = base.w(3, 3)

  @tf.function
  def step(x=base.x(2, 3)):
    y = tf.numpy_function(lambda a: np.sin(a), [x @ w], tf.float32)
    y.set_shape([2, 3])
    z = tf.py_function(lambda a: a * 2.0, [y @ w], tf.float32)
    z.set_shape([2, 3])
    return tf.reduce_sum(z @ w), y

  return step


@base.function
def strings():

  @tf.function
  def step(text=tf.constant(['a b', 'c', 'd e f']), x=base.x(3)):
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


@base.function
def lookup_tables():
  initializer = tf.lookup.KeyValueTensorInitializer(['a', 'b'], [1, 2])
  table = tf.lookup.StaticHashTable(initializer, -1)
  mutable = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, 0.0)

  @tf.function
  def step(text=tf.constant(['a', 'c', 'b']), x=base.x(3)):
    ids = table.lookup(text)
    keys = tf.cast(ids, tf.int64)
    mutable.insert(keys, x + mutable.lookup(keys))
    return ids * 2, mutable.lookup(keys) * 2.0, table.size() + 1

  return step


@base.function
def print_and_assert():

  @tf.function
  def step(x=base.x(2, 3)):
    tf.debugging.assert_near(x, x + 0.0)
    tf.Assert(tf.reduce_sum(x) < 100.0, [x])
    tf.print('sum', tf.reduce_sum(x), output_stream='file:///dev/null')
    y = tf.debugging.check_numerics(tf.sin(x), 'y')
    tf.debugging.assert_shapes([(y, (2, 3))])
    return y @ tf.transpose(x)

  return step


@base.function
def dataset_iterator():
  dataset = tf.data.Dataset.range(100).map(
      lambda i: tf.cast(i, tf.float32)).batch(4)
  iterator = iter(dataset.repeat())
  w = base.w(4, 4)

  @tf.function
  def step():
    x = tf.reshape(next(iterator), [1, 4])
    y = iterator.get_next_as_optional()
    z = tf.cond(y.has_value(), lambda: y.get_value(), lambda: tf.zeros([4]))
    return x @ w, z * 2.0

  return step


@base.function
def dataset_in_function():
  w = base.w(4, 4)

  @tf.function
  def step(n=tf.constant(8, tf.int64)):
    total = tf.zeros([1, 4])
    for batch in tf.data.Dataset.range(n).batch(4, drop_remainder=True):
      total += tf.reshape(tf.cast(batch, tf.float32), [1, 4]) @ w
    reduced = tf.data.Dataset.range(5).reduce(tf.constant(0, tf.int64),
                                              lambda a, b: a + b)
    return total, reduced * 2

  return step


@base.function
def optionals():

  @tf.function
  def step(x=base.x(2, 3)):
    option = tf.experimental.Optional.from_value(x * 2.0)
    empty = tf.experimental.Optional.empty(tf.TensorSpec([2, 3], tf.float32))
    chosen = tf.cond(tf.reduce_sum(x) > 0, lambda: option, lambda: empty)
    return tf.where(chosen.has_value(), option.get_value(), x) + 1.0

  return step


@base.function
def images_and_bytes():

  @tf.function
  def step(x=base.x(8, 8, 3)):
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


@base.function
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
