"""Graphs of TensorFlow 1: state on hosts other than variables."""

from __future__ import annotations

import os
import tempfile

import numpy as np
import tensorflow as tf

from helpers.real_graphs import base

tf1 = tf.compat.v1


@base.v1_graph
def functions_in_a_session():
  x, _, feed = base.fed_pair()
  w = tf1.get_variable('w', [3, 3], initializer=base.initializer(1),
                       use_resource=True)

  @tf.function
  def layer(v):
    for _ in tf.range(2):
      v = tf.tanh(v @ w)
    return v

  out = layer(x) + layer(x * 2.0)
  return [out, tf1.gradients(out, [w])[0] * 2.0
         ], {k: feed[k] for k in feed if k is x}


@base.v1_graph
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


@base.v1_graph
def tables_in_a_session():
  table = tf1.lookup.StaticHashTable(
      tf1.lookup.KeyValueTensorInitializer(['a', 'b'], np.array([1, 2],
                                                                np.int64)), -1)
  text = tf1.placeholder(tf.string, [None], 'text')
  return [table.lookup(text) * 2,
          tf1.strings.length(text) + 1], {text: ['a', 'z']}


@base.v1_graph
def temporary_variables():
  x, _, feed = base.fed_pair()
  raw = tf.raw_ops
  reference = raw.TemporaryVariable(shape=[3], dtype=tf.float32, var_name='t')
  assigned = raw.Assign(ref=reference, value=tf1.reduce_sum(x, 0))
  added = raw.AssignAdd(ref=assigned, value=[1.0, 2.0, 3.0])
  final = raw.DestroyTemporaryVariable(ref=added, var_name='t')
  return [final * 2.0,
          tf1.accumulate_n([x, x * 2.0,
                            tf1.sin(x)])], {k: feed[k] for k in feed if k is x}


@base.v1_graph
def stacks_of_references():
  x, _, feed = base.fed_pair()
  raw = tf.raw_ops
  stack = raw.Stack(elem_type=tf.float32, stack_name='s')
  pushed = raw.StackPush(handle=stack, elem=x)
  with tf1.control_dependencies([pushed]):
    popped = raw.StackPop(handle=stack, elem_type=tf.float32)
  with tf1.control_dependencies([popped]):
    closed = raw.StackClose(handle=stack)
  return [popped * 2.0, closed], {k: feed[k] for k in feed if k is x}


@base.v1_graph
def conditional_accumulators():
  x, _, feed = base.fed_pair()
  accumulator = tf1.ConditionalAccumulator(tf.float32, [3])
  put = accumulator.apply_grad(tf1.reduce_sum(x, 0), local_step=99)
  with tf1.control_dependencies([put]):
    feeds = {k: feed[k] for k in feed if k is x}
    return [accumulator.take_grad(1) * 2.0], feeds


@base.v1_graph
def barriers_and_staging():
  x, _, feed = base.fed_pair()
  area = tf.raw_ops
  put = area.Stage(values=[x * 2.0], shared_name='area')
  with tf1.control_dependencies([put]):
    out = area.Unstage(dtypes=[tf.float32], shared_name='area')
  return [out[0] + 1.0], {k: feed[k] for k in feed if k is x}


@base.v1_graph
def one_shot_iterators():
  dataset = tf1.data.Dataset.range(20).map(
      lambda i: tf.cast(i, tf.float32)).batch(2)
  a = tf1.data.make_one_shot_iterator(dataset).get_next()
  initializable = tf1.data.make_initializable_iterator(dataset)
  tf1.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS,
                        initializable.initializer)
  return [a * 2.0, initializable.get_next() + 1.0], {}


@base.v1_graph
def moving_averages():
  x, y, feed = base.fed_pair()
  loss = base.loss_of_two_layers(x, y, True)
  average = tf1.train.ExponentialMovingAverage(0.9)
  train = tf1.train.GradientDescentOptimizer(0.1).minimize(loss)
  with tf1.control_dependencies([train]):
    update = average.apply(tf1.trainable_variables() + [loss])
  with tf1.control_dependencies([update]):
    return [loss, average.average(loss).read_value() + 1.0], feed


@base.v1_graph
def saved_and_restored():
  w = tf1.get_variable('w', [3], initializer=base.initializer(1),
                       use_resource=False)
  u = tf1.get_variable('u', [3], initializer=base.initializer(2),
                       use_resource=True)
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


@base.v1_graph
def python_functions_in_a_session():
  x, _, feed = base.fed_pair()
  out = tf1.py_func(np.sin, [x * 2.0], tf.float32)
  return [out + 1.0, tf1.Print(x, [x], summarize=0) * 2.0
         ], {k: feed[k] for k in feed if k is x}


@base.v1_graph
def summaries_and_metrics():
  x, y, feed = base.fed_pair()
  loss = base.loss_of_two_layers(x, y, True)
  tf1.summary.scalar('loss', loss)
  tf1.summary.histogram('x', x)
  _, update = tf1.metrics.mean(loss)
  tf1.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS,
                        tf1.local_variables_initializer())
  return [tf1.strings.length(tf1.summary.merge_all()) > 0, update], feed
