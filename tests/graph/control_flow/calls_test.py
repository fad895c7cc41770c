"""Calls of functions that stay calls cost what their functions do."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.framework import function as tf_function
from tensorflow.python.ops import functional_ops

from gdp_grappler import errors
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph.sources import pruning
from helpers import graph_defs

tf1 = tf.compat.v1


def _weight(*shape):
  return tf1.get_variable('w', shape, use_resource=True)


def _loop(limit=lambda: 7):
  w, x = _weight(16, 16), tf1.placeholder(tf.float32, [8, 16])
  return tf.while_loop(lambda i, _: i < limit(), lambda i, y:
                       (i + 1, tf.nn.relu(y @ w)), [0, x])[1]


def _nested_loops():
  w, x = _weight(16, 16), tf1.placeholder(tf.float32, [8, 16])

  def outer(i, y):
    return i + 1, tf.while_loop(lambda j, _: j < 3, lambda j, z:
                                (j + 1, tf.tanh(z @ w)), [0, y])[1]

  return tf.while_loop(lambda i, _: i < 5, outer, [0, x])[1]


def _gradient_of_a_loop():
  w, x = _weight(16, 16), tf1.placeholder(tf.float32, [8, 16])
  y = tf.while_loop(lambda i, _: i < 4, lambda i, y: (i + 1, tf.tanh(y @ w)),
                    [0, x])[1]
  return tf.gradients(tf.reduce_sum(y), w.handle)[0]


def _condition():
  x, p = tf1.placeholder(tf.float32, [8, 16]), tf1.placeholder(tf.bool, [])
  return tf.cond(p, lambda: tf.sin(x), lambda: x @ tf.ones([16, 16]))


def _case():
  x, k = tf1.placeholder(tf.float32, [8, 16]), tf1.placeholder(tf.int32, [])
  return tf.switch_case(
      k, [lambda: tf.sin(x), lambda: x @ tf.ones([16, 16]), lambda: x])


def _call(graph):
  """The number of the dearest op of a graph that calls functions."""
  calls = graph.where_type(lambda kind: 'Call' in kind or 'While' in kind)
  return int(np.argmax(graph.flops * calls))


def _told(make, **options):
  """FLOPs of the call of a graph, and what was told about the graph."""
  said = []
  graph = graph_def_io.read(graph_defs.source(graph_defs.built(make)),
                            tell=said.append, **options)
  return graph.flops[_call(graph)], said


def _both(make):
  """The graph with its calls, and inlined."""

  def build():
    tf.identity(make(), name='result')

  source = graph_defs.source(graph_defs.built(build), fetches=('result',))
  said = []
  kept = graph_def_io.read(
      dataclasses.replace(
          source, graph_def=pruning.needed(source.graph_def, source.fetches)),
      tell=said.append)
  inlined = graph_def_io.read(pruning.simplify(source, 'it', True),
                              tell=said.append)
  assert not said
  assert len(kept.names) < len(inlined.names)
  return kept, inlined


def _work(graph):
  """FLOPs and bytes of traffic; a switch of many ways moves nothing."""
  moves = [t != '_SwitchN' for t in graph.op_types]
  return (graph.flops @ graph.executions,
          (graph.io_bytes * moves) @ graph.executions)


@pytest.mark.parametrize(
    'make', [_loop, _nested_loops, _gradient_of_a_loop, _condition, _case])
def test_calls_cost_what_their_functions_do(make):
  kept, inlined = _both(make)
  # Identities and other ops around a body differ, at an operation each.
  np.testing.assert_allclose(_work(kept), _work(inlined), rtol=.05)


def test_calls_in_calls_cost_what_they_do():

  def make(decorate):
    w, x = _weight(16, 16), tf1.placeholder(tf.float32, [8, 16])
    inner = decorate(lambda x: tf.nn.relu(x @ w))
    decorate(lambda x: inner(inner(x)))(x)

  called = graph_defs.read(lambda: make(tf.function))
  plain = graph_defs.read(lambda: make(lambda f: f))
  assert called.num_ops < plain.num_ops
  np.testing.assert_allclose(_work(called), _work(plain), rtol=.05)


def test_a_known_loop_is_counted_and_its_memory_held():
  kept, _ = _both(_loop)
  op = _call(kept)
  assert kept.flops[op] == pytest.approx(7 * 2 * 8 * 16 * 16, rel=.1)
  sizes = kept.tensor_bytes[kept.tensor_ops == op]
  state = 8 * 16 * 4
  assert state in sizes[:-1]
  # Beside the state that it returns: a product and what becomes of it.
  assert state / 2 < sizes[-1] <= 3 * state


def test_the_price_and_the_peak_have_it():
  kept, _ = _both(_gradient_of_a_loop)
  cluster = presets.preset('cpu')
  sim = simulator.Simulator(cluster)
  placement = placement_lib.Placement(np.zeros(kept.num_ops, np.int32), cluster)
  price = sim.evaluate(kept, placement)
  bare = sim.evaluate(
      kept.replace(flops=np.zeros(kept.num_ops),
                   io_bytes=np.zeros(kept.num_ops)), placement)
  assert price.step_time_s > bare.step_time_s
  assert price.peak_bytes[0] > 4 * 8 * 16 * 4


def test_unknown_loops_are_told_once():
  limit = []

  def make():
    limit.append(tf1.placeholder(tf.int32, []))
    return _loop(lambda: limit[0])

  flops, said = _told(make, trip_count=9)
  assert flops == pytest.approx(9 * 2 * 8 * 16 * 16, rel=.1)
  assert said == [
      '1 while loop of unknown length ("while") counted as 9 iterations; '
      'trip_count sets the number.'
  ]


def test_a_limit_that_depends_on_a_shape_is_known():
  """Only a constant limit was known, so such a loop ran the default number."""

  def make():
    size = tf.shape(tf1.placeholder(tf.float32, [None, 7]))[1]
    return _loop(lambda: size)

  flops, said = _told(make)
  assert flops == pytest.approx(7 * 2 * 8 * 16 * 16, rel=.1) and not said


def test_a_number_that_a_call_in_a_call_returns_is_known():
  """So the gradient of a loop in a function ran the default number."""

  def make():
    count = tf.function(lambda: tf.while_loop(lambda i: i < 7, lambda i:
                                              (i + 1,), [0])[0])
    limit = tf.function(lambda: count() + 0)()
    return _loop(lambda: limit)

  flops, said = _told(make)
  assert flops == pytest.approx(7 * 2 * 8 * 16 * 16, rel=.1) and not said


def test_an_argument_with_one_element_keeps_its_shape():

  def make():
    inner = tf.function(lambda size: tf.exp(tf.fill(size, 1.)))
    return inner(tf.shape(tf1.placeholder(tf.float32, [None])))

  assert _told(make, unknown_dim=100)[0] > 100


def test_a_loop_in_wrapped_functions_is_counted():
  """The counter in a wrapped function was not found."""

  def make():
    x = tf1.placeholder(tf.float32, [16, 16])

    @tf_function.Defun(tf.int32, tf.float32)
    def cond(i, unused):
      del unused
      return i < 7

    @tf_function.Defun(tf.int32, tf.float32)
    def body(i, y):
      return i + 1, tf.nn.relu(y @ x)  # TensorFlow wraps both because of `x`.

    functional_ops.While([0, x], cond, body)

  flops, said = _told(make)
  assert flops == pytest.approx(7 * 2 * 16**3, rel=.2) and not said


def test_a_constant_condition_takes_its_branch():

  def make():
    x = tf1.placeholder(tf.float32, [8, 16])
    return tf.raw_ops.StatelessIf(cond=tf.constant(False), input=[x],
                                  Tout=[tf.float32],
                                  then_branch=dear.get_concrete_function(x),
                                  else_branch=cheap.get_concrete_function(x))

  dear = tf.function(lambda x: x @ tf.ones([16, 16]))
  cheap = tf.function(tf.sin)
  graph = graph_defs.read(make)
  assert 0 < graph.flops[graph.op_types.index('StatelessIf')] < 4096


def test_what_xla_compiles_costs_something():

  def make():
    w = _weight(16, 16)

    @tf.function(jit_compile=True)
    def compiled(x):
      return tf.nn.relu(x @ w) @ w

    return compiled(tf1.placeholder(tf.float32, [8, 16]))

  assert _told(make)[0] >= 2 * 2 * 8 * 16 * 16


def _compiled():

  @tf.function(jit_compile=True)
  def product(x):
    return tf.nn.relu(x @ tf.ones([16, 16]))

  return product(tf1.placeholder(tf.float32, [8, 16]))


@pytest.mark.parametrize('make, launches', [(_loop, 7 * 2), (_compiled, 1),
                                            (_nested_loops, 5 * 3 * 2)])
def test_each_op_in_a_call_launches_its_kernels(make, launches):
  """A loop of 200 iterations that stayed one op launched one kernel."""
  graph = graph_defs.read(make)
  assert graph.rounds[_call(graph)] == launches


@pytest.mark.parametrize('order', [1, -1])
def test_a_call_holds_the_memory_of_the_branch_that_runs(order):
  """A Merge once held the first branch, even if the second one ran."""
  raw = tf.raw_ops

  @tf.function
  def inner(x):
    no, yes = raw.Switch(data=x, pred=tf.constant(True))
    y = raw.Merge(inputs=[tf.sin(no), tf.cos(yes)][::order]).output
    large = tf.fill([64, 16], tf.reduce_sum(y))
    return y * tf.reduce_sum(large)

  graph = graph_defs.read(lambda: inner(tf1.placeholder(tf.float32, [8, 16])))
  held = graph.tensor_bytes[graph.tensor_ops == _call(graph)][-1]
  assert held >= 64 * 16 * 4


@pytest.fixture(name='library_only')
def _library_only(monkeypatch):
  """TensorFlow knows no function, as in a process that only reads a file."""
  monkeypatch.setattr(type(context.context()), 'has_function', lambda *_: False)


@pytest.mark.usefixtures('library_only')
def test_a_call_in_a_call_is_found_in_the_library_of_the_graph():
  """Outside of the process that traced the graph, such a call cost nothing."""

  @tf.function(jit_compile=True)
  def compiled(x):
    for _ in tf.range(7):
      x = tf.nn.relu(x @ tf.ones([16, 16]))
    return x

  flops, said = _told(lambda: compiled(tf1.placeholder(tf.float32, [8, 16])))
  assert flops == pytest.approx(7 * 2 * 8 * 16 * 16, rel=.1) and not said


def test_ops_named_after_functions_cost_what_these_do():
  """An op in a function whose type was a function's name cost nothing."""

  @tf_function.Defun(tf.float32)
  def inner(x):
    return x @ tf.ones([16, 16])

  @tf_function.Defun(tf.float32)
  def outer(x):
    return inner(inner(x))

  graph = graph_defs.read(lambda: outer(tf1.placeholder(tf.float32, [8, 16])))
  assert graph.flops[-1] == pytest.approx(2 * 2 * 8 * 16 * 16, rel=.1)


def _called():
  """A graph with one call, the call and its function."""

  @tf.function
  def inner(x):
    return x @ tf.ones([16, 16])

  definition = graph_defs.built(
      lambda: inner(tf1.placeholder(tf.float32, [8, 16])))
  return (graph_defs.source(definition),
          next(n for n in definition.node if 'Call' in n.op),
          definition.library.function[0])


def test_a_function_that_calls_itself_is_refused():
  source, call, function = _called()
  again = function.node_def.add()
  again.CopyFrom(call)
  again.name, again.input[:] = 'again', ['x']
  again.attr['f'].func.name = function.signature.name
  with pytest.raises(errors.InvalidGraphError, match='calls itself'):
    graph_def_io.read(source)


def test_a_function_that_is_not_there_is_told():
  source = graph_defs.source(graph_defs.built(_condition))
  node = next(n for n in source.graph_def.node if 'If' in n.op)
  node.attr['then_branch'].func.name = 'nowhere'
  said = []
  graph = graph_def_io.read(source, tell=said.append)
  assert graph.flops[graph.op_types.index(node.op)] == 0
  assert len(said) == 1 and 'cannot be read' in said[0]
