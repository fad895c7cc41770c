"""Trains three steps of a small function, and prints the results.

The argument is the value of the option, as JSON.
"""

import json
import sys

import common
import tensorflow as tf


def make_step():
  weights = [tf.Variable(tf.eye(8)) for _ in range(4)]

  @tf.function
  def step(x):
    with tf.GradientTape() as tape:
      for weight in weights:
        x = tf.tanh(tf.matmul(x, weight) * .5 + .1)
      loss = tf.reduce_sum(x)
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):
      weight.assign_sub(1e-3 * gradient)
    return loss

  return step


def main():
  common.make_devices(2)
  tf.config.optimizer.set_experimental_options(
      {'gdp_placement': json.loads(sys.argv[1])})
  step = make_step()
  loss, used = common.devices_used(lambda: step(tf.ones((8, 8))))
  common.finish(losses=[float(loss), float(step(tf.ones((8, 8))))], used=used,
                searched='gdp_grappler.plugin.optimizer' in sys.modules)


if __name__ == '__main__':
  main()
