"""Tests of the rules that are told, on graphs made for each."""

import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import presets
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.legality import reasons
from gdp_grappler.plugin import scopes
from helpers import clusters
from helpers import graph_defs
from helpers import graphs

tf1 = tf.compat.v1


def _reasons(graph, cluster, source=None):
  return reasons.Reasons(graph, constraints.suitable_devices(graph, cluster),
                         cluster.device_labels, source)


def _of(make):
  """Reasons by name of the ops of a v1 graph on 2xP100."""
  graph_def = graph_defs.built(make)
  source = source_graph.SourceGraph('made', graph_def)
  graph = graph_def_io.read(source)
  found = _reasons(graph, presets.preset('2xP100'), source)
  return {name: found.of(i) for i, name in enumerate(graph.names)}


def test_a_free_op():
  found = _reasons(graphs.chain(2), clusters.make_cluster(2)).of(0)
  assert found == reasons.Reason('free', 'is free: the placer chose')


def test_a_pin_of_the_program():

  def make():
    with scopes.pin('GPU:1'):
      tf.matmul(tf.ones((8, 8)), tf.ones((8, 8)), name='product')

  assert _of(make)['product'] == reasons.Reason(
      'pin', 'is pinned to /device:GPU:1 by the program')


def test_left_alone():

  def make():
    with scopes.leave_alone():
      tf.matmul(tf.ones((8, 8)), tf.ones((8, 8)), name='product')

  found = _of(make)['product']
  assert found.kind == 'stays' and 'asked to leave it alone' in found.text


@pytest.mark.parametrize('make, said', [
    (lambda: tf.strings.length('a', name='op'), 'strings are handled by the'),
    (lambda: tf1.placeholder(tf.float32, [1], 'op'),
     'exchanges values with the caller'),
    (lambda: tf1.py_func(lambda: 1., [], tf.float64, name='op'),
     'it runs Python'),
])
def test_what_stays_says_why(make, said):
  found = _of(make)['op']
  assert found.kind == 'stays' and said in found.text


def test_what_has_no_device_stays_where_tensorflow_puts_it():
  """The reason of an op without device was that it 'stays where it is'."""

  def make():
    tf.debugging.check_numerics(tf.ones(8), '', name='op')

  assert _of(make)['op'].text == (
      'stays where TensorFlow puts it: it has state that is found by name and '
      'device')


def test_an_op_that_tensorflow_moves_to_the_host_is_where_it_puts_it():
  """The op was refused, because no device suited it."""

  def make():
    with tf.device('/gpu:0'):
      tf.strings.as_string(tf.ones(8), name='op')

  assert _of(make)['op'].text == (
      'stays where TensorFlow puts it: strings are handled by the host only')


def test_a_kernel_that_only_one_type_has():
  graph = graphs.chain(1, allowed_types=np.array([[True, False]]))
  source = source_graph.SourceGraph('made', graph_defs.graph_def())
  found = _reasons(graph, clusters.make_cluster(2), source).of(0)
  assert found.kind == 'kernel' and 'for CPU only' in found.text


def test_a_graph_with_its_own_costs_has_neither_program_nor_kernels():
  """Reasons named a program and kernels that do not exist."""
  graph = graphs.chain(3, allowed_types=[[1, 0], [1, 1], [1, 1]],
                       pins=['', 'GPU:1', ''], user_pins=[0, 1,
                                                          0], groups=[0, 1, 1])
  found = _reasons(graph, clusters.make_cluster(2))
  assert found.of(0) == reasons.Reason(
      'kernel', 'may be on CPU only, according to the graph file')
  assert found.of(1).text == 'is pinned to GPU:1 by the graph'
  assert found.bond(1) == "a co-location group of the graph file"


def test_the_variable_that_ops_share():

  def make():
    weight = tf1.get_variable('weight', [8, 8], use_resource=True)
    tf1.assign_add(weight, tf.ones([8, 8]))

  found = _of(make)
  read = next(v for k, v in found.items() if k.endswith('ReadVariableOp'))
  assert read.kind == 'free' and '(variable weight)' in read.text


def test_the_member_that_leaves_no_choice_is_named():
  graph = graphs.chain(3, groups=[0, 0, 0], pins=['', 'CPU:0', ''],
                       op_types=['Enter', 'Add', 'Exit'])
  found = _reasons(graph, clusters.make_cluster(2)).of(2)
  assert found.kind == 'colocation'
  assert found.text == (
      'shares a device with op1 (one while loop), which stays where it is: the '
      'graph pins it to CPU:0')


def test_what_a_free_op_may_not_have_is_told():
  graph = graphs.chain(1, allowed_types=np.array([[False, True]]))
  found = _reasons(graph, clusters.make_cluster(2)).of(0)
  assert found.text.endswith('it may not be on CPU:0')


def test_arithmetic_that_a_cpu_would_round_otherwise():

  def make():
    tf.matmul(tf.ones((8, 8)), tf.ones((8, 8)), name='product')

  found = _of(make)['product']
  assert found.kind == 'free' and found.text.endswith(
      'it may not be on CPU:0, as it multiplies matrices, and a CPU may give '
      'other results')


def test_arithmetic_that_only_one_device_rounds_as_before():
  graph = graphs.chain(2, groups=[0, 0], same_numbers=[[1, 1], [0, 1]])
  found = _reasons(graph, clusters.make_cluster(1))
  assert found.of(1).kind == 'numbers'
  assert 'a CPU may give' in found.of(1).text
  assert found.of(0).kind == 'colocation' and 'op1' in found.of(0).text
  allowed = graph.replace(may_round=True)
  assert _reasons(allowed, clusters.make_cluster(1)).of(1).kind == 'free'
