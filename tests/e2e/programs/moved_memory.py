"""Memory of variables that move. Must not import this package at once."""

import os

import tensorflow as tf


def memory():
  """Moves a large variable to another device and back; others do not move."""
  import gdp_grappler
  size = 1 << 26
  variable = tf.Variable(tf.zeros([size // 4]))
  read = tf.function(lambda: tf.reduce_sum(variable))
  sizes = []
  for i in range(8):
    variable.assign_add(tf.ones_like(variable))
    gdp_grappler.relocate([variable], f'CPU:{(i + 1) % 3}')
    read()
    with open('/proc/self/statm', encoding='utf-8') as file:
      sizes.append(int(file.read().split()[1]) * os.sysconf('SC_PAGE_SIZE'))
  return {'freed': max(sizes) - sizes[1] < 2 * size}
