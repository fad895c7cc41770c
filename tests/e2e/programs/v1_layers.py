"""Layers of TensorFlow 1 that share weights by a scope."""

import common
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
common.make_devices(2)


def output(x):
  with tf1.variable_scope('net', reuse=tf1.AUTO_REUSE,
                          initializer=tf1.constant_initializer(.5)):
    return tf1.layers.dense(x, 4, name='top')


def results():
  """Returns the names of the variables and the outputs of two towers."""
  with tf.Graph().as_default(), tf1.Session() as session:
    x = tf1.constant(np.ones((2, 3), 'f'))
    towers = [output(x), output(2 * x)]
    built = tf1.layers.Dense(4)
    built.build((None, 3))
    session.run(tf1.global_variables_initializer())
    return {
        'values': [tower.tolist() for tower in session.run(towers)],
        'names': [v.name for v in tf1.global_variables()]
    }


def main():
  stock = results()
  common.set_option(True)
  common.finish(stock=stock, placed=results())


if __name__ == '__main__':
  main()
