"""Graphs of TensorFlow 1: optimizers and their variables."""

from __future__ import annotations

import tensorflow as tf

from helpers.real_graphs import base

tf1 = tf.compat.v1


def _v1_training(name, optimizer, use_resource):

  def make():
    x, y, feed = base.fed_pair()
    loss = base.loss_of_two_layers(x, y, use_resource)
    step = tf1.train.get_or_create_global_step()
    train = optimizer().minimize(loss, global_step=step)
    with tf1.control_dependencies([train]):
      after = tf1.identity(loss)
      count = step.read_value() + 1
    return [loss, train, after, count], feed

  make.__name__ = name
  return base.v1_graph(make)


for _kind, _use_resource in (('ref', False), ('resource', True)):
  for _title, _optimizer in (
      ('sgd', lambda: tf1.train.GradientDescentOptimizer(0.1)),
      ('adam', lambda: tf1.train.AdamOptimizer(0.1)),
      ('momentum', lambda: tf1.train.MomentumOptimizer(0.1, 0.9)),
      ('adagrad', lambda: tf1.train.AdagradOptimizer(0.1)),
      ('rmsprop', lambda: tf1.train.RMSPropOptimizer(0.1, centered=True)),
      ('ftrl', lambda: tf1.train.FtrlOptimizer(0.1))):
    _v1_training(f'{_kind}_{_title}', _optimizer, _use_resource)


@base.v1_graph
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


@base.v1_graph
def ref_switch_and_merge():
  a = tf1.Variable([1.0, 2.0], use_resource=False)
  flag = tf1.placeholder(tf.bool, [], 'flag')
  low, high = tf.raw_ops.RefSwitch(data=a._ref(), pred=flag)
  value, index = tf.raw_ops.RefMerge(inputs=[low, high])
  before = tf1.identity(value) + 1.0
  with tf1.control_dependencies([before]):
    updated = tf.raw_ops.AssignAdd(ref=high, value=[1.0, 1.0])
  return [before, index, tf1.identity(updated)], {flag: True}


@base.v1_graph
def partitioned_variables():
  x, y, feed = base.fed_pair()
  with tf1.variable_scope('p', partitioner=tf1.fixed_size_partitioner(3),
                          use_resource=False):
    w = tf1.get_variable('w', [3, 2], initializer=base.initializer(1))
  table = tf1.get_variable('t', [6, 2], initializer=base.initializer(2),
                           partitioner=tf1.fixed_size_partitioner(2))
  rows = tf1.nn.embedding_lookup(table, [1, 5, 2, 1])
  loss = tf1.reduce_sum(
      tf1.matmul(x, tf1.convert_to_tensor(w)) * rows) + tf1.reduce_sum(y)
  train = tf1.train.AdamOptimizer(0.1).minimize(loss)
  return [loss, train], feed


@base.v1_graph
def sparse_gradients_of_references():
  table = tf1.Variable(base.fed(6, 3), use_resource=False)
  rows = tf1.gather(table, tf1.constant([1, 2, 2]))
  loss = tf1.reduce_sum(rows**2)
  first = tf1.train.AdamOptimizer(0.1).minimize(loss)
  with tf1.control_dependencies([first]):
    again = tf1.reduce_sum(tf1.gather(table, tf1.constant([0, 2]))**2)
    second = tf1.train.MomentumOptimizer(0.1, 0.9).minimize(again)
  return [loss, first, again, second], {}


@base.v1_graph
def colocated_with_ops():
  x, _, feed = base.fed_pair()
  a = tf1.sin(x)
  with tf1.colocate_with(a):
    b = tf1.cos(x) + 1.0
  v = tf1.get_variable('v', [3], initializer=base.initializer(1))
  with tf1.colocate_with(v):
    c = tf1.reduce_sum(b, 0) * 2.0
  with tf1.colocate_with(c, ignore_existing=True):
    d = c + 3.0
  return [a, b, d, v.assign_add(c)], {k: feed[k] for k in feed if k is x}
