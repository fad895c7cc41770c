"""A TensorFlow server of a cluster, as a user starts one on each host.

A user's program: it imports nothing of ours.
"""

import sys

import tensorflow as tf


def main(addresses, task):
  tf.distribute.Server({'worker': addresses.split(',')}, 'worker', int(task))
  print('serving', flush=True)
  sys.stdin.read()  # It ends with who started it.


if __name__ == '__main__':
  main(*sys.argv[1:])
