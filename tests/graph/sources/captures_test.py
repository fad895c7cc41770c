import functools

import pytest
import tensorflow as tf
from tensorflow.core.framework import graph_pb2

from gdp_grappler.graph import variable_names
from gdp_grappler.graph.sources import captures
from helpers import graph_defs


def _as_keras_makes_it(inner):
  traced = tf.function(inner)

  @functools.wraps(inner)
  def wrapper(x):
    return traced(x)

  outer = tf.function(lambda x: wrapper(x) + 1.)
  return lambda x: outer(x)


def test_functions_are_found_in_closures():
  variable = tf.Variable(2.)
  function = _as_keras_makes_it(lambda x: x * variable)
  assert not captures.concrete_functions(function)
  assert function(tf.constant(3.)).numpy() == 7.
  found = captures.concrete_functions(function)
  assert len(found) == 2
  assert all(name == c.name.decode() for name, c in found.items())


def test_variables_are_known_by_argument():
  one, other = tf.Variable(2.), tf.Variable([5.])
  constant = tf.constant([7.])
  traced = tf.function(lambda x, y: x * other + one * y + constant)
  traced(tf.constant(1.), tf.constant(2.))
  concrete, = captures.concrete_functions(traced).values()
  found = captures.variables(concrete)
  assert {id(v) for v in found.values()} == {id(one), id(other)}
  for index, variable in found.items():
    assert concrete.inputs[index].dtype == tf.resource
    assert dict(
        (id(inner), outer) for outer, inner in concrete.graph.captures)[id(
            concrete.inputs[index])] is variable.handle


def test_variables_that_are_gone_are_left_out():
  handle = tf.Variable(2.).handle
  traced = tf.function(
      lambda: tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32))
  assert traced().numpy() == 2.
  concrete, = captures.concrete_functions(traced).values()
  assert captures.variables(concrete) == {}


def test_compiled_functions_are_seen():
  compiled = tf.function(lambda x: x, jit_compile=True)
  assert captures.is_compiled(lambda: compiled(1.))
  assert not captures.is_compiled(_as_keras_makes_it(lambda x: x))


def test_cells_that_are_not_filled_are_passed_over():

  def outer():

    def function():
      return later

    assert captures.concrete_functions(function) == {}
    later = 1
    return later

  assert outer() == 1


def _graph_def(*arguments):
  """Of arguments: (index, variable) or (index, None)."""
  graph_def = graph_pb2.GraphDef()
  for index, variable in arguments:
    node = graph_def.node.add(name=f'unknown_{index}', op='_Arg')
    node.attr['index'].i = index
    if variable is not None:
      node.attr['_handle_dtypes'].list.type.append(
          variable.dtype.as_datatype_enum)
      node.attr['_handle_shapes'].list.shape.add().CopyFrom(
          variable.shape.as_proto())
  return graph_def


def _traced(function):
  """A function as TensorFlow has traced it."""
  traced = tf.function(function)
  traced(tf.constant(1.))
  concrete, = captures.concrete_functions(traced).values()
  return concrete


@pytest.mark.parametrize('swapped', [False, True])
def test_arguments_get_the_names_of_variables_of_their_shapes(swapped):
  one, other = tf.Variable(2., name='one'), tf.Variable([5.], name='net/other')
  concrete = _traced(lambda x: x * other + one)
  given = (one, other) if swapped else (other, one)
  graph_def = _graph_def((0, None), *enumerate(given, 1))
  captures.name_variables(graph_def, [concrete])
  assert [variable_names.of(n) for n in graph_def.node
         ] == (['', '', ''] if swapped else ['', 'net/other', 'one'])


def test_received_variables_are_found_and_the_graph_stays_as_it_is():
  variable = tf.Variable([5.], name='net/other')
  candidates = (_traced(lambda x: x * variable),)
  graph_def = _graph_def((0, None), (1, variable))
  before = graph_def.SerializeToString(deterministic=True)
  assert captures.received(graph_def, candidates) == {1: variable}
  assert graph_def.SerializeToString(deterministic=True) == before
  assert not captures.received(graph_def, ())


def _bare_handles(count):
  """Of arguments before TensorFlow's placer: the last ones are handles."""
  graph_def = _graph_def(*((i, None) for i in range(count)))
  for node in graph_def.node[1:]:
    node.attr['T'].type = tf.resource.as_datatype_enum
  return graph_def


def test_handles_without_shapes_get_names_and_shapes():
  """Variables held nothing where a graph stopped at TensorFlow's placer.

  So did those of every model with a recurrent layer that was read for a GPU.
  """
  one, other = tf.Variable(2., name='one'), tf.Variable([5.], name='net/other')
  concrete = _traced(lambda x: x * other + one)
  graph_def = _bare_handles(3)
  captures.name_variables(graph_def, [concrete])
  assert [variable_names.of(n) for n in graph_def.node
         ] == ['', 'net/other', 'one']
  shape, = graph_def.node[1].attr['_handle_shapes'].list.shape
  assert shape == other.shape.as_proto()
  assert list(graph_def.node[1].attr['_handle_dtypes'].list.type) == [
      tf.float32.as_datatype_enum
  ]


def test_handles_without_shapes_of_another_function_get_no_names():
  one = tf.Variable(2., name='one')
  concrete = _traced(lambda x: x + one)
  graph_def = _bare_handles(3)
  captures.name_variables(graph_def, [concrete])
  assert not any(map(variable_names.of, graph_def.node))


def test_functions_are_found_by_their_runtime_name():
  variable = tf.Variable(2.)
  traced = tf.function(lambda x: x * variable)
  traced(tf.constant(1.))
  (name, concrete), = captures.concrete_functions(traced).items()
  found, = captures.alive(name)
  assert captures.variables(found) == captures.variables(concrete)
  assert captures.alive(f'{name}_of_nobody') == ()


def test_instances_are_of_the_class_itself():

  class Kind:
    pass

  class Special(Kind):
    pass

  first, second, special = Kind(), Kind(), Special()
  assert captures.instances(Kind) == [first, second]
  assert captures.instances(Special) == [special]
  del first
  assert captures.instances(Kind) == [second]


def test_arguments_get_the_names_of_variables_by_number():
  graph_def = graph_defs.graph_def(graph_defs.node('v', '_Arg', index={'i': 1}),
                                   graph_defs.node('x', '_Arg', index={'i': 0}),
                                   graph_defs.node('y', 'Identity', ['x']))
  variable = tf.Variable(1., name='dense/kernel')
  captures.name_arguments(graph_def, {1: variable})
  assert [*map(variable_names.of, graph_def.node)] == ['dense/kernel', '', '']
