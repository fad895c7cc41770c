"""Distinct ops, one at a time, on a CPU."""

import itertools
import types

import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler import deadlines
from gdp_grappler.evaluation.profiling import single_ops

tf1 = tf.compat.v1
_CPU = '/job:localhost/replica:0/task:0/device:CPU:0'


@pytest.fixture(autouse=True)
def _clock(monkeypatch):
  """Each time is longer than the one before, so none is lost in noise."""
  calls = itertools.count()
  monkeypatch.setattr('time.perf_counter', lambda: 1e-9 * next(calls)**2)


def _seconds(build, deadline=deadlines.NEVER):
  """Of all ops of a graph, by name."""
  with tf.Graph().as_default() as graph, tf.device(_CPU):
    build()
    names = [op.name for op in graph.get_operations()]
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      return single_ops.seconds(tf, session, names, _CPU, False, deadline)


def _net():
  x = tf1.Variable(tf.ones([64, 64]), use_resource=True, name='x')
  y = x
  for number in range(3):
    y = tf.matmul(y, x, name=f'product{number}')
  tf.reduce_sum(y, axis=[0], name='sum')
  tf.gather(y, tf.constant([3, 1]), name='rows')
  tf.reshape(y, [-1], name='flat')
  x.assign_add(y, name='update')


def test_copies_wait_for_what_keeps_the_device_busy(monkeypatch):
  monkeypatch.setattr(single_ops, '_PRODUCT', 16)
  monkeypatch.setattr(single_ops, '_products_ahead', lambda *_: 3)
  with tf.Graph().as_default() as graph, tf.device(_CPU):
    _net()
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      found = single_ops.seconds(tf, session, ['product0', 'sum'], _CPU, True,
                                 deadlines.NEVER)
  del graph
  assert set(found) == {'product0', 'sum'}


def test_products_ahead_are_counted_by_what_they_take(monkeypatch):
  monkeypatch.setattr(single_ops, '_PRODUCT', 16)
  # Less than the least that a product is taken to last.
  assert 1 < single_ops._products_ahead(tf, _CPU) <= 201


def test_ops_that_are_alike_take_the_same():
  found = _seconds(_net)
  assert found['product0'] == found['product1'] == found['product2']
  assert {'sum', 'rows', 'update'} <= set(found)


def test_what_launches_no_kernel_is_not_timed():
  found = _seconds(_net)
  assert 'flat' not in found and 'x/Read/ReadVariableOp' not in found


def test_other_attributes_and_shapes_make_another_op():
  with tf.Graph().as_default() as graph:
    a, b = tf.ones([4, 8]), tf.ones([8, 4])
    tf.matmul(a, b, name='plain')
    tf.matmul(b, b, transpose_a=True, name='transposed')
    tf.matmul(b, a, name='wide')
    tf.matmul(a, b, name='again')
    kinds = single_ops._distinct(graph,
                                 ['plain', 'transposed', 'wide', 'again'])
  assert [kind.names for kind in kinds] == [('plain', 'again'), ('transposed',),
                                            ('wide',)]


def test_other_outputs_make_another_op():
  """A small and a large op of equal inputs once counted as one."""
  with tf.Graph().as_default() as graph:
    tf.fill([2, 3], 1., name='small')
    tf.fill([2000, 3000], 1., name='large')
    dims = [tf1.placeholder(tf.int32, [2]) for _ in range(2)]
    for number, where in enumerate((0, 1, 0)):
      tf.fill(dims[where], 1., name=f'unknown{number}')
    names = ['small', 'large', 'unknown0', 'unknown1', 'unknown2']
    kinds = single_ops._distinct(graph, names)
  assert [kind.names for kind in kinds] == [('small',), ('large',),
                                            ('unknown0', 'unknown2'),
                                            ('unknown1',)]


def test_a_small_integer_without_a_value_is_left_out():
  """A branch that was not taken once ended the whole profile."""

  def build():
    dead, _ = tf.raw_ops.Switch(data=tf.constant([2]), pred=tf.constant(True))
    tf.fill(dead, 1., name='dead')
    tf.fill([300, 300], 1., name='alive')

  found = _seconds(build)
  assert 'alive' in found and 'dead' not in found


def test_a_time_that_is_lost_in_noise_is_unknown(monkeypatch):
  """It once counted as 0 s, so the op was free."""
  clock = itertools.count(step=1e-3)
  monkeypatch.setattr('time.perf_counter', lambda: next(clock))
  session = types.SimpleNamespace(make_callable=lambda ops: lambda: None)
  assert single_ops._difference_s(tf, session, [], [None]) is None


def test_small_integers_are_those_of_the_graph():
  """An axis that is made up would be out of range."""
  found = _seconds(lambda: tf.concat([tf.ones([2, 3])] * 2, axis=tf.constant(1),
                                     name='joined'))
  assert found['joined'] >= 0


def test_inputs_of_a_shape_that_nobody_knows_are_left_out():

  def build():
    x = tf1.placeholder_with_default(np.ones([3, 3], np.float32), [None, 3])
    tf.tanh(x, name='unknown')
    tf.tanh(tf.ones([3, 3]), name='known')

  assert set(_seconds(build)) >= {'known'}
  assert 'unknown' not in _seconds(build)


def test_an_op_that_fails_is_left_out():

  def build():
    # Made up of ones alone, which has no inverse.
    tf.linalg.inv(tf.eye(2), name='wrong')
    tf.tanh(tf.ones([3]), name='good')

  found = _seconds(build)
  assert 'good' in found and 'wrong' not in found


def test_without_time_nothing_is_timed():
  assert not _seconds(_net, deadlines.within(0.))


def test_inputs_do_not_exceed_a_chunk():
  with tf.Graph().as_default() as graph:
    for number in range(3):
      x = tf1.placeholder(tf.float32, [1 << 27, number + 1])
      tf.tanh(x, name=f'large{number}')
    kinds = single_ops._distinct(graph, [f'large{i}' for i in range(3)])
    chunks = list(single_ops._chunks(kinds))
  assert [len(chunk) for chunk in chunks] == [1, 1, 1]


def _gather(dims, name):
  handle = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=dims)
  tf.raw_ops.ResourceGather(resource=handle, indices=[0], dtype=tf.float32,
                            name=name)


def test_a_resource_has_the_size_of_its_variable():
  """A resource once counted as one byte, so that chunks exceeded the memory."""
  with tf.Graph().as_default() as graph:
    for number in range(3):
      _gather([1 << 27, number + 1], f'large{number}')
    kinds = single_ops._distinct(graph, [f'large{i}' for i in range(3)])
    chunks = list(single_ops._chunks(kinds))
  assert kinds[0].size_bytes == 4 * (1 << 27) + 8
  assert [len(chunk) for chunk in chunks] == [1, 1, 1]


def test_a_variable_of_unknown_shape_cannot_be_made():
  with tf.Graph().as_default() as graph:
    _gather([None, 3], 'rows')
    kind, = single_ops._distinct(graph, ['rows'])
  assert not single_ops._can_be_made(kind, {})


def test_inputs_that_cannot_be_initialized_are_left_out(monkeypatch):
  """The error of the initializer once ended the whole profile."""

  def failing(self, dtype, dims):
    del self
    zero = tf.raw_ops.Sub(x=tf.constant(1), y=1)
    return tf1.Variable(
        lambda: tf.ones(dims, dtype) * tf.cast(1 // zero, dtype),
        use_resource=True)

  monkeypatch.setattr(single_ops._Makers, '_new', failing)
  assert not _seconds(lambda: tf.tanh(tf.ones([3]), name='tanh'))
