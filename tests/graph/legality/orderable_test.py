"""Between which ops control edges change nothing but the order."""

import numpy as np
import tensorflow as tf

from gdp_grappler.graph.legality import orderable
from helpers import graph_defs
from helpers import graphs

tf1 = tf.compat.v1


def _orderable(make):
  """Names of the ops between which edges may go."""
  graph = graph_defs.read(make)
  return {
      name for name, ok in zip(graph.names, orderable.orderable(graph)) if ok
  }


def _switch(value, condition, name):
  """(if false, if true)."""
  return tf1.raw_ops.Switch(data=value, pred=condition, name=name)


def test_stateless_ops_only():

  def make():
    x = tf1.placeholder(tf.float32, [2, 2], 'x')
    v = tf1.get_variable('v', [2, 2], use_resource=True)
    tf.matmul(x, v.read_value(), name='product')
    v.assign_add(x, name='add')
    tf.random.uniform([2], name='draw')

  found = _orderable(make)
  assert 'product' in found
  assert not found & {'x', 'v', 'add', 'draw/RandomUniform'}


def test_a_branch_may_not_run_and_what_follows_does():

  def make():
    x = tf1.placeholder(tf.float32, [2], 'x')
    condition = tf1.placeholder(tf.bool, [], 'condition')
    no, yes = _switch(x, condition, 'switch')
    a, b = tf.exp(no, name='a'), tf.sin(yes, name='b')
    both, _ = tf1.raw_ops.Merge(inputs=[a, b], name='merge')
    tf.cos(both, name='after')
    tf.abs(x, name='beside')

  found = _orderable(make)
  assert {'after', 'beside'} <= found
  assert not found & {'a', 'b', 'switch', 'merge'}


def test_a_merge_of_different_conditions_is_not_understood():

  def make():
    x = tf1.placeholder(tf.float32, [2], 'x')
    one = tf1.placeholder(tf.bool, [], 'one')
    other = tf1.placeholder(tf.bool, [], 'other')
    no, _ = _switch(x, one, 'first')
    _, yes = _switch(x, other, 'second')
    value, _ = tf1.raw_ops.Merge(inputs=[no, yes], name='merge')
    tf.exp(value, name='after')

  assert 'after' not in _orderable(make)


def test_conditions_in_conditions():

  def make():
    x = tf1.placeholder(tf.float32, [2], 'x')
    outer = tf1.placeholder(tf.bool, [], 'outer')
    inner = tf1.placeholder(tf.bool, [], 'inner')
    no, yes = _switch(x, outer, 'outer_switch')
    _, inside = _switch(inner, outer, 'inner_condition')
    inner_no, inner_yes = _switch(yes, inside, 'inner_switch')
    joined, _ = tf1.raw_ops.Merge(inputs=[inner_no, inner_yes], name='joined')
    tf.exp(joined, name='in_the_branch')
    value, _ = tf1.raw_ops.Merge(inputs=[no, joined], name='merge')
    tf.exp(value, name='after')

  found = _orderable(make)
  assert 'in_the_branch' not in found and 'after' in found


def test_ops_that_only_wait_for_a_branch_may_not_run_either():

  def make():
    x = tf1.placeholder(tf.float32, [2], 'x')
    _, yes = _switch(x, tf1.placeholder(tf.bool, [], 'condition'), 'switch')
    with tf.control_dependencies([tf.identity(yes, name='pivot')]):
      tf.exp(x, name='waits')

  assert 'waits' not in _orderable(make)


def _loop():
  x = tf1.placeholder(tf.float32, [2, 2], 'x')
  kept = tf.exp(x, name='before')

  def body(i, total):
    return i + 1, tf.matmul(total, kept, name='inside')

  _, total = tf1.while_loop(lambda i, _: i < 3, body, (0, x), name='loop')
  tf.sin(total, name='after')


def _v1_loop():
  tf1.disable_control_flow_v2()
  try:
    _loop()
  finally:
    tf1.enable_control_flow_v2()


def test_loops_are_left_alone_and_what_is_around_them_is_not():
  found = _orderable(_v1_loop)
  assert {'before', 'after'} <= found
  assert not any(name.startswith('loop') for name in found)


def test_what_follows_a_loop_comes_after_all_that_enters_it():
  graph = graph_defs.read(_v1_loop)
  barriers = orderable.loop_barriers(graph)
  types = np.array(graph.op_types)
  enters, leaves = (set(np.flatnonzero(types == t)) for t in ('Enter', 'Exit'))
  assert len(enters) == 3 and len(leaves) == 2
  assert set(map(tuple, barriers.tolist())) == {
      (enter, leave) for enter in enters for leave in leaves
  }


def test_a_loop_in_a_loop_has_barriers_at_the_outer_one_only():

  def make():
    tf1.disable_control_flow_v2()
    x = tf1.placeholder(tf.float32, [2], 'x')

    def inner(value):
      return tf1.while_loop(lambda v: tf.reduce_sum(v) < 3., lambda v: v * 2.,
                            [value], name='inner')

    tf1.while_loop(lambda v: tf.reduce_sum(v) < 9., inner, [x], name='outer')
    tf1.enable_control_flow_v2()

  graph = graph_defs.read(make)
  names = {
      tuple(graph.names[op].split('/')[:2])
      for edge in orderable.loop_barriers(graph) for op in edge
  }
  assert names and all('inner' not in name for name in names)


def test_a_graph_without_loops_has_no_barriers():
  assert orderable.loop_barriers(graphs.chain(3)).shape == (0, 2)


def test_nothing_behind_a_queue():
  """Ops after an enqueue once got edges: a full queue then waited forever."""

  def make():
    x = tf1.placeholder(tf.float32, [2], 'x')
    queue = tf.queue.FIFOQueue(2, [tf.float32], [[2]])
    tf.exp(queue.dequeue(), name='behind')
    with tf1.control_dependencies([queue.enqueue(x)]):
      tf.cos(x, name='behind_enqueue')
    tf.sin(x, name='beside')

  found = _orderable(make)
  assert 'beside' in found
  assert not found & {'behind', 'behind_enqueue'}


def test_nothing_behind_an_op_that_waits_for_room_or_for_python():
  """Ops after these once got edges."""

  def make():
    x = tf1.placeholder(tf.float32, [2], 'x')
    waits = (tf1.raw_ops.Stage(values=[x], capacity=1),
             tf1.raw_ops.MapStage(key=tf.constant(0, tf.int64), indices=[0],
                                  values=[x], dtypes=[tf.float32], capacity=1),
             tf1.py_func(np.sin, [x], tf.float32, stateful=False))
    for wait in waits:
      with tf1.control_dependencies([wait]):
        tf.cos(x, name='behind')
    tf.sin(x, name='beside')

  found = _orderable(make)
  assert 'beside' in found
  assert not [name for name in found if name.startswith('behind')]


def test_ops_that_run_often_or_never():
  graph = graphs.chain(4).replace(executions=[1., 3., 0., 1.])
  assert orderable.orderable(graph).tolist() == [True, False, False, True]


def test_what_has_state_is_left_alone():
  graph = graphs.chain(2).replace(stateful=[False, True])
  assert orderable.orderable(graph).tolist() == [True, False]


def test_ops_of_other_projects_have_no_state():
  graph = graphs.chain(2, op_types=['MatMul', 'SomebodysOwn'])
  assert orderable.orderable(graph).all()
