"""Values that are known before the step, against what TensorFlow computes."""

from __future__ import annotations

import math
import operator

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.control_flow import arithmetic
from gdp_grappler.graph.control_flow import frames as frames_lib
from gdp_grappler.graph.control_flow import values as values_lib
from helpers import graph_defs
from helpers.real_graphs import base

tf1 = tf.compat.v1
raw = tf.raw_ops
_TESTS = {
    tf1.less: operator.lt, tf1.less_equal: operator.le,
    tf1.greater: operator.gt, tf1.greater_equal: operator.ge,
    tf1.not_equal: operator.ne
}


def _links(graph):
  """Nodes and (producer, output or -1, consumer) of a graph's edges."""
  nodes = graph.as_graph_def().node
  numbers = {node.name: i for i, node in enumerate(nodes)}
  edges = []
  for target, node in enumerate(nodes):
    for text in node.input:
      name, _, output = text.lstrip('^').partition(':')
      edges.append((numbers[name],
                    -1 if text.startswith('^') else int(output or 0), target))
  return nodes, edges


def _shape_of(graph, nodes):

  def shape_of(tensor):
    op, output = tensor
    shape = graph.get_operation_by_name(nodes[op].name).outputs[output].shape
    return shape.as_list() if shape.is_fully_defined() else None

  return shape_of


def _values(graph):
  nodes, edges = _links(graph)
  inputs = [[] for _ in nodes]
  for source, output, target in edges:
    if output >= 0:
      inputs[target].append((source, output))
  return nodes, values_lib.Values(nodes, inputs, _shape_of(graph, nodes))


def _frames(graph):
  nodes, edges = _links(graph)
  return nodes, frames_lib.analyse(nodes, edges, np.zeros(len(nodes)),
                                   _shape_of(graph, nodes))


def _value(make):
  """What is known of the tensor that a function makes, as a list."""
  with tf.Graph().as_default() as graph:
    tensor = make()
  nodes, values = _values(graph)
  names = [node.name for node in nodes]
  value = values.value((names.index(tensor.op.name), tensor.value_index))
  return None if value is None else value.array.tolist()


def _run(tensors):
  config = tf1.ConfigProto()
  config.graph_options.rewrite_options.disable_meta_optimizer = True
  with tf1.Session(config=config) as session:
    return session.run(tensors)


class _Program:
  """Random ops on a few small numbers."""

  def __init__(self, rng):
    self._rng = rng
    self.tensors = [
        tf.constant(rng.integers(-4, 5, shape), dtype)
        for dtype in (tf.int32, tf.float32)
        for shape in ((), (1,), (3,), (2, 3))
    ]
    self.tensors.append(tf.constant(rng.normal(size=3) * 4, tf.float32))
    self._steps = (self._arithmetic, self._comparison, self._reshaped,
                   self._reduced, self._taken, self._cast, self._handed_on,
                   self._joined, self._described)

  def step(self):
    """Adds an op, or none if what was drawn does not fit together."""
    try:
      self.tensors.append(self._rng.choice(self._steps)())
    except ValueError:
      pass

  def _any(self, dtype=None):
    fitting = [
        t for t in self.tensors
        if (t.dtype != tf.bool if dtype is None else t.dtype == dtype)
    ]
    return fitting[self._rng.integers(len(fitting))]

  def _two(self):
    first = self._any()
    return first, self._any(first.dtype)

  def _arithmetic(self):
    x, y = self._two()
    if x.dtype == tf.float32 and not self._rng.integers(6):
      return raw.RealDiv(x=x, y=tf.abs(y) + 1.)
    made = self._rng.choice([
        raw.Add, raw.AddV2, raw.Sub, raw.Mul, raw.Maximum, raw.Minimum,
        raw.FloorDiv, raw.FloorMod, raw.Neg
    ])
    if made is raw.Neg:
      return made(x=x)
    if made in (raw.FloorDiv, raw.FloorMod):
      y = tf.abs(y) + tf.ones([], y.dtype)
    return made(x=x, y=y)

  def _comparison(self):
    x, y = self._two()
    return self._rng.choice([
        raw.Less, raw.LessEqual, raw.Greater, raw.GreaterEqual, raw.Equal,
        raw.NotEqual
    ])(x=x, y=y)

  def _axis(self, x):
    return int(self._rng.integers(-x.shape.rank - 1, x.shape.rank + 1))

  def _reshaped(self):
    x = self._any()
    which = self._rng.integers(4)
    if which == 0:
      return raw.ExpandDims(input=x, axis=self._axis(x))
    if which == 1:
      return raw.Squeeze(input=x)
    if which == 2:
      return raw.Squeeze(input=x, axis=[self._axis(x)])
    return raw.Reshape(tensor=x, shape=[-1])

  def _reduced(self):
    x = self._any()
    axis = self._axis(x)
    return self._rng.choice([raw.Sum, raw.Max, raw.Min,
                             raw.Prod])(input=x,
                                        axis=self._rng.choice([axis, 0]),
                                        keep_dims=bool(self._rng.integers(2)))

  def _taken(self):
    x = self._any()
    first, last = self._rng.integers(-3, 4, 2).tolist()
    if self._rng.integers(2):
      return x[first] if self._rng.integers(2) else x[first:last]
    return raw.GatherV2(params=x, indices=[0, 0], axis=self._axis(x))

  def _cast(self):
    dtype = (tf.int32, tf.float32, tf.bool)[self._rng.integers(3)]
    return raw.Cast(x=self._any(), DstT=dtype)

  def _handed_on(self):
    return self._rng.choice(
        [raw.Identity, raw.StopGradient, raw.Snapshot,
         raw.PreventGradient])(input=self._any())

  def _joined(self):
    x, y = self._two()
    if self._rng.integers(2):
      return raw.Pack(values=[x, y], axis=self._axis(x))
    return raw.ConcatV2(values=[x, y], axis=self._axis(x))

  def _described(self):
    return self._rng.choice([raw.Shape, raw.Size])(input=self._any())


@pytest.mark.parametrize('seed', range(8))
def test_what_is_known_is_what_tensorflow_computes(seed):
  with tf.Graph().as_default() as graph:
    program = _Program(np.random.default_rng(seed))
    for _ in range(60):
      program.step()
    expected = _run(program.tensors)
  nodes, values = _values(graph)
  numbers = {node.name: i for i, node in enumerate(nodes)}
  known = 0
  for tensor, wanted in zip(program.tensors, expected):
    value = values.value((numbers[tensor.op.name], tensor.value_index))
    if value is not None:
      known += 1
      assert not value.varies
      np.testing.assert_allclose(value.array, wanted, 1e-4, 1e-4,
                                 err_msg=tensor.op.type)
  assert known > .6 * len(program.tensors)


def test_a_cast_cuts_off():
  assert _value(lambda: raw.Cast(x=[1.7, -1.7], DstT=tf.int32)) == [1, -1]


def test_the_axis_of_a_stack_counts():
  assert _value(lambda: raw.Pack(values=[[1, 2], [3, 4]], axis=1)) == [[1, 3],
                                                                       [2, 4]]


def test_only_the_named_axes_are_squeezed():
  assert _value(lambda: raw.Squeeze(input=[[7]], axis=[0])) == [7]


def test_a_bit_pattern_is_not_a_value():
  assert _value(lambda: raw.Bitcast(input=1., type=tf.int32)) is None


def test_what_is_drawn_is_not_known():
  assert _value(lambda: tf1.random_uniform([2])) is None


def test_large_constants_are_not_looked_at():
  assert _value(lambda: tf.constant(np.zeros(2000))) is None


def _trips(test, start, delta, limit):
  """Iterations of a loop as Python runs it, and what its counter becomes."""
  trips = 0
  while _TESTS[test](start, limit) and trips < 50:
    start, trips = start + delta, trips + 1
  return (trips, start) if trips < 50 else (math.inf, None)


@hypothesis.settings(max_examples=30, deadline=None)
@hypothesis.given(test=st.sampled_from(list(_TESTS)), start=st.integers(-6, 6),
                  delta=st.integers(-3, 3), limit=st.integers(-6, 6))
def test_a_loop_with_a_counter_runs_as_often_as_python_s(
    test, start, delta, limit):
  with tf.Graph().as_default() as graph:
    end = base.with_frames(lambda: tf1.while_loop(lambda i: test(
        i, limit), lambda i: i + delta, [tf.constant(start)]))
  nodes, frames = _frames(graph)
  trips, last = _trips(test, start, delta, limit)
  if math.isinf(trips):
    assert len(frames.assumed) == 1
    return
  cond = next(i for i, node in enumerate(nodes) if node.op == 'LoopCond')
  assert frames.executions[cond] == trips + 1
  name = end.op.name
  number = next(i for i, node in enumerate(nodes) if node.name == name)
  assert frames.values.scalar((number, 0)) == last


@pytest.mark.parametrize('limit', [0, 1, 5])
def test_a_list_is_as_long_as_was_reserved(limit):

  def make():
    reserved = raw.TensorListReserve(element_shape=[2], num_elements=limit,
                                     element_dtype=tf.float32)
    handed_on = tf.identity(reserved)
    return raw.TensorListLength(input_handle=handed_on)

  assert _value(make) == limit


def test_a_mean_that_is_cast_need_not_be_whole():
  node = tf1.NodeDef(op='Cast')
  node.attr['DstT'].type = tf.int32.as_datatype_enum
  value = arithmetic.apply(node, [arithmetic.Value(np.array(1.5), True)])
  assert value.array == 1.5 and value.varies


def _sines(loop):
  """Executions of Sin in a loop that AutoGraph converted, and lines."""
  function, said = tf.function(loop), []
  source = source_graph.SourceGraph(
      'loop', graph_defs.optimized(lambda: function(tf.ones([4]))))
  graph = graph_def_io.read(source, tell=said.append)
  return graph.executions[graph.op_types.index('Sin')], said


def test_a_part_of_an_or_that_may_become_true_again_is_no_bound():
  """Such a loop counted as 3 iterations, without a line."""

  def loop(x):
    i = tf.constant(0)
    while i < 3 or (i >= 3 and i < 9):
      x, i = tf.sin(x), i + 1

  trips, said = _sines(loop)
  assert trips == 32 and said


def test_a_side_condition_that_overflows_hides_no_bound():

  def loop(x):
    i, h = tf.constant(0), tf.constant(7.)
    while tf.logical_and(i < 700, h > 0.):
      x, i, h = tf.sin(x), i + 1, h * 10.

  assert _sines(loop) == (700, [])


def test_each_test_of_a_loop_is_looked_at_once():
  """The time was exponential in the number of tests: minutes for 18."""

  def loop(x):
    i, ok = tf.constant(0), tf.constant(True)
    while ok and i < 50:
      x, i = tf.sin(x), i + 1
      for _ in range(30):
        p = tf.reduce_sum(x) < 99.
        ok = tf.logical_and(tf.logical_not(ok), tf.logical_or(ok, p))

  assert _sines(loop)[0] == 50


def test_what_comes_after_a_break_that_data_decides_counts():
  """The rest of the body counted nothing: its condition was a constant."""

  def loop(x):
    for _ in tf.range(12):
      if tf.reduce_all(x > 9.):
        break
      x = tf.sin(x)

  assert _sines(loop)[0] == 12
