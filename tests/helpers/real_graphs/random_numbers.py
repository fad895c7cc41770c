"""Random numbers, with and without a state."""

from __future__ import annotations

import tensorflow as tf

from helpers.real_graphs import base


@base.function
def stateless_random():

  @tf.function
  def step(seed=tf.constant([1, 2])):
    more = tf.random.split(seed, 2)
    return (tf.random.stateless_normal([3], more[0])
            + tf.random.stateless_uniform([3], more[1]),
            tf.random.stateless_categorical(tf.ones([2, 3]), 4, seed) + 1,
            tf.random.experimental.stateless_shuffle(tf.range(5), seed) * 2)

  return step


@base.function
def stateful_random_with_seed():

  @tf.function
  def step(x=base.x(4, 4)):
    return (tf.nn.dropout(x, 0.5, seed=3), tf.random.normal([3], seed=4) * 2.0,
            tf.random.shuffle(x, seed=5) @ x,
            tf.random.uniform([2], 0, 9, tf.int32, seed=6) + 1)

  return step


@base.function
def random_generators():
  generator = tf.random.Generator.from_seed(7)

  @tf.function
  def step(x=base.x(4, 4)):
    a = generator.normal([4, 4]) @ x
    b = generator.uniform([3], 0, 100, tf.int64) + 1
    for _ in tf.range(2):
      a += generator.truncated_normal([4, 4])
    return a, b, generator.binomial([3], 5.0, 0.5)

  return step
