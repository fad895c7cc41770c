"""The registers of the programs, and their common parts.

A program is a function in `FUNCTIONS`, which makes its variables and returns a
`tf.function`, or one in `V1_GRAPHS`, which builds a graph of TensorFlow 1 and
returns what to fetch and what to feed, {placeholder: value}.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
Function = Callable[[], Any]
V1Graph = Callable[[], tuple[Sequence[Any], dict[tf.Tensor, Any]]]

FUNCTIONS: dict[str, Function] = {}
V1_GRAPHS: dict[str, V1Graph] = {}


def function(make: Function) -> Function:
  """Registers a program that makes a `tf.function`."""
  FUNCTIONS[make.__name__] = make
  return make


def v1_graph(make: V1Graph) -> V1Graph:
  """Registers a program that builds a graph of TensorFlow 1."""
  V1_GRAPHS[make.__name__] = make
  return make


def x(*shape: int, dtype: Any = np.float32) -> tf.Tensor:
  """Returns small numbers of both signs, without 0."""
  size = int(np.prod(shape))
  return tf.constant((np.arange(size) % 7 - 3).reshape(shape) / 4 + 0.1, dtype)


def w(*shape: int, dtype: tf.DType = tf.float32) -> tf.Variable:
  """Returns a variable of random numbers."""
  return tf.Variable(tf.cast(tf.random.normal(shape, stddev=0.5), dtype))


def fed(*shape: int) -> np.ndarray:
  """Returns small numbers for a placeholder."""
  return (np.arange(np.prod(shape)) % 7 - 3).reshape(shape).astype('f') / 4


def fed_pair() -> tuple[tf.Tensor, tf.Tensor, dict[tf.Tensor, np.ndarray]]:
  """Placeholders for inputs [4, 3] and targets [4, 1], and their values."""
  inputs = tf1.placeholder(tf.float32, [None, 3], 'x')
  targets = tf1.placeholder(tf.float32, [None, 1], 'y')
  return inputs, targets, {inputs: fed(4, 3), targets: fed(4, 1)}


def initializer(seed: int) -> Any:
  """Returns an initializer for variables of TensorFlow 1."""
  return tf1.random_normal_initializer(stddev=0.5, seed=seed)


def with_frames(make: Callable[[], Any]) -> Any:
  """Runs with the control flow of TensorFlow 1: frames, Switch and Merge."""
  was_on = tf1.control_flow_v2_enabled()
  tf1.disable_control_flow_v2()
  try:
    return make()
  finally:
    if was_on:
      tf1.enable_control_flow_v2()


def loss_of_two_layers(inputs: tf.Tensor, targets: tf.Tensor,
                       use_resource: bool) -> tf.Tensor:
  """The loss of a model for `fed_pair`."""
  with tf1.variable_scope('model', use_resource=use_resource):
    first = tf1.get_variable('w', [3, 4], initializer=initializer(1))
    bias = tf1.get_variable('b', [4], initializer=tf1.zeros_initializer())
    second = tf1.get_variable('u', [4, 1], initializer=initializer(2))
  hidden = tf1.nn.relu(tf1.matmul(inputs, first) + bias)
  return tf1.reduce_mean((tf1.matmul(hidden, second) - targets)**2)
