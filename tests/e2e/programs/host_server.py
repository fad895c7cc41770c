"""A TensorFlow server of a cluster, such as users start on each host.

A user's program: it does not import this package.
"""

import sys

import tensorflow as tf


def main(addresses, task):
  tf.distribute.Server({'worker': addresses.split(',')}, 'worker', int(task))
  print('serving', flush=True)
  sys.stdin.read()  # The server ends with its parent process.


if __name__ == '__main__':
  main(*sys.argv[1:])
