"""Distinct ops, one at a time, on a CPU."""

import itertools
import types

import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler import deadlines
from gdp_grappler.cluster import device_figures
from gdp_grappler.evaluation.calibrating import clocks
from gdp_grappler.evaluation.calibrating import kernel_times
from gdp_grappler.evaluation.measuring import session_config
from gdp_grappler.evaluation.profiling import single_ops

tf1 = tf.compat.v1
_CPU = '/job:localhost/replica:0/task:0/device:CPU:0'
_OTHER = '/job:localhost/replica:0/task:0/device:CPU:1'


@pytest.fixture(autouse=True)
def _clock(monkeypatch):
  """Each time is longer than the one before, so none is lost in noise."""
  calls = itertools.count()
  monkeypatch.setattr('time.perf_counter', lambda: 1e-3 * next(calls)**2)
  monkeypatch.setattr(kernel_times, '_PRODUCT', 16)


def _seconds(build, deadline=deadlines.NEVER):
  """Of all ops of a graph, by name."""
  with tf.Graph().as_default() as graph, tf.device(_CPU):
    build()
    names = [op.name for op in graph.get_operations()]
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      return single_ops.seconds(session, names, _CPU, deadline)


def _net():
  x = tf1.Variable(tf.ones([64, 64]), use_resource=True, name='x')
  y = x
  for number in range(3):
    y = tf.matmul(y, x, name=f'product{number}')
  tf.reduce_sum(y, axis=[0], name='sum')
  tf.gather(y, tf.constant([3, 1]), name='rows')
  tf.reshape(y, [-1], name='flat')
  x.assign_add(y, name='update')


@pytest.fixture(name='steps')
def _steps(monkeypatch):
  """(ops before the copies, copies) of each distinct op of `_net`."""
  result = []

  def keep(session, before, copies):
    del session
    result.append((before, copies))

  monkeypatch.setattr(single_ops, '_products_ahead', lambda *_: 3)
  monkeypatch.setattr(single_ops, '_difference_s', keep)
  # The other CPU is in the place of a GPU.
  two = session_config.as_it_is(2)
  monkeypatch.setattr(single_ops, '_config', lambda: two)
  with tf.Graph().as_default() as graph, tf.device(_OTHER):
    _net()
    names = [op.name for op in graph.get_operations()]
    with tf1.Session(config=two) as session:
      session.run(tf1.global_variables_initializer())
      single_ops.seconds(session, names, _OTHER, deadlines.NEVER)
  return result


def test_copies_wait_for_what_keeps_the_device_busy(steps):
  assert len(steps) >= 4
  for before, copies in steps:
    assert len(copies) == single_ops._COPIES
    for copy in copies:
      assert copy.device == _OTHER and copy.control_inputs == before
    names = [op.name for op in _needed(before) if op.type == 'MatMul']
    assert len([name for name in names if 'gdp' not in name]) == 3


def test_the_host_does_not_wait_for_the_products(steps):
  """Axes on the host waited for products, so the launches came too late."""
  on_host = [
      op for _, copies in steps for op in _needed(copies) if op.device == _CPU
  ]
  assert on_host
  assert all(op.device == _CPU for op in _needed(on_host))


def test_inputs_are_on_the_device_before_the_products(steps):
  """Copies of indices from the host to a card would wait for the products."""
  for before, copies in steps:
    first, = (op for op in _needed(before) if op.name.endswith('_first_0'))
    assert first.type == copies[0].type and first.device == _OTHER
    assert list(first.inputs) == list(copies[0].inputs)


def _needed(ops):
  """The ops, and all that they wait for."""
  seen, waiting = set(), list(ops)
  while waiting:
    op = waiting.pop()
    if op not in seen:
      seen.add(op)
      waiting += [*(t.op for t in op.inputs), *op.control_inputs]
  return seen


def test_products_ahead_are_as_many_as_outlast_the_launches(monkeypatch):

  def quick(steps, unused_deadline):
    for step in steps:
      step()
    return [1e-3, 1e-3 + 8 * 6e-4]  # Of 1 and 9 products.

  monkeypatch.setattr(clocks, 'quick', quick)
  assert single_ops._products_ahead(_CPU, deadlines.NEVER) == 5


def test_ops_that_are_alike_take_the_same():
  found = _seconds(_net)
  assert found['product0'] == found['product1'] == found['product2']
  assert {'sum', 'rows', 'update'} <= set(found)


def test_what_launches_no_kernel_is_not_timed():
  found = _seconds(_net)
  assert 'flat' not in found and 'x/Read/ReadVariableOp' not in found


def _kinds(make):
  """The distinct ones of the ops that a function makes and returns."""
  with tf.Graph().as_default() as graph:
    return single_ops._distinct(graph, [tensor.op.name for tensor in make()])


def test_other_attributes_and_shapes_make_another_op():

  def make():
    a, b = tf.ones([4, 8]), tf.ones([8, 4])
    yield tf.matmul(a, b, name='plain')
    yield tf.matmul(b, b, transpose_a=True, name='transposed')
    yield tf.matmul(b, a, name='wide')
    yield tf.matmul(a, b, name='again')

  assert [kind.names for kind in _kinds(make)] == [('plain', 'again'),
                                                   ('transposed',), ('wide',)]


def test_other_outputs_make_another_op():
  """A small and a large op of equal inputs once counted as one."""

  def make():
    yield tf.fill([2, 3], 1., name='small')
    yield tf.fill([2000, 3000], 1., name='large')
    dims = [tf1.placeholder(tf.int32, [2]) for _ in range(2)]
    for number, where in enumerate((0, 1, 0)):
      yield tf.fill(dims[where], 1., name=f'unknown{number}')

  assert [kind.names for kind in _kinds(make)] == [('small',), ('large',),
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
  assert single_ops._difference_s(session, [], [None]) is None


@pytest.mark.parametrize('each_s, without_s', [(3e-6, 1.1e-6), (1e-6, 1e-8)])
def test_the_gap_is_no_part_of_the_seconds(monkeypatch, each_s, without_s):
  """It counted twice, because the simulator adds the gap, too."""
  now = [0.]
  monkeypatch.setattr('time.perf_counter', lambda: now[0])

  def make_callable(ops):

    def step():
      now[0] += 1e-3 + each_s * ops.count('copy')

    return step

  session = types.SimpleNamespace(make_callable=make_callable)
  found = single_ops._difference_s(session, ['busy'], ['copy'] * 4)
  assert device_figures.CARD_LAUNCH['gap_s'] == 1.9e-6
  assert found == pytest.approx(without_s)


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


def _tanh(dims):
  return tf.tanh(tf1.placeholder(tf.float32, dims))


def _gather(dims):
  handle = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=dims)
  return tf.raw_ops.ResourceGather(resource=handle, indices=[0],
                                   dtype=tf.float32)


@pytest.mark.parametrize('make, others_bytes', [(_tanh, 0), (_gather, 8)])
def test_inputs_do_not_exceed_a_chunk(make, others_bytes):
  """A resource once counted as one byte, so that chunks exceeded the memory."""
  kinds = _kinds(lambda: [make([1 << 27, i + 1]) for i in range(3)])
  assert kinds[0].size_bytes == 4 * (1 << 27) + others_bytes
  assert [len(chunk) for chunk in single_ops._chunks(kinds)] == [1, 1, 1]


def test_a_variable_of_unknown_shape_cannot_be_made():
  kind, = _kinds(lambda: [_gather([None, 3])])
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
