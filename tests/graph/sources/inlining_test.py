"""Functions are replaced by their bodies as long as those are of any use."""

from __future__ import annotations

import pytest
import tensorflow as tf
from tensorflow.core.framework import graph_pb2
from tensorflow.core.framework import types_pb2

from gdp_grappler import errors
from gdp_grappler.graph.sources import inlining


def _calls(graph_def: graph_pb2.GraphDef, name: str, calls: int,
           callee: str) -> None:
  """Adds a function that calls another one, or an op."""
  function = graph_def.library.function.add()
  function.signature.name = name
  function.signature.input_arg.add(name='x', type=types_pb2.DT_FLOAT)
  function.signature.output_arg.add(name='y', type=types_pb2.DT_FLOAT)
  last = 'x'
  for i in range(calls):
    node = function.node_def.add(name=f'n{i}', op=callee, input=[last])
    last = f'n{i}:y:0'
    if callee == 'Neg':
      node.attr['T'].type = types_pb2.DT_FLOAT
  function.ret['y'] = last


def _graph(depth: int, width: int) -> graph_pb2.GraphDef:
  graph_def = graph_pb2.GraphDef()
  for i in range(depth):
    _calls(graph_def, f'f{i}', width, f'f{i + 1}')
  _calls(graph_def, f'f{depth}', 1, 'Neg')
  node = graph_def.node.add(name='x', op='Placeholder')
  node.attr['dtype'].type = types_pb2.DT_FLOAT
  node.attr['shape'].shape.dim.add(size=3)
  graph_def.node.add(name='out', op='f0', input=['x'])
  return graph_def


def test_nested_calls_become_their_bodies():
  graph_def = _graph(3, 2)
  assert inlining.has_calls(graph_def)
  found = inlining.inline(graph_def, ('out',), 'g.pb')
  assert sum(node.op == 'Neg' for node in found.node) == 8


def test_functions_that_stand_for_a_billion_nodes_are_refused():
  with pytest.raises(errors.InvalidGraphError, match='more than 5,000,000'):
    inlining.inline(_graph(40, 2), ('out',), 'g.pb')


def test_deep_nesting_is_refused():
  """Grappler's stack ended, and the process with it."""
  assert inlining.inline(_graph(90, 1), ('out',), 'g.pb').node
  with pytest.raises(errors.InvalidGraphError, match='100 deep'):
    inlining.inline(_graph(20_000, 1), ('out',), 'g.pb')


@pytest.mark.parametrize('first', ['f0', 'f2', 'f5'])
def test_functions_that_call_themselves_are_refused(first):
  graph_def = _graph(5, 1)
  graph_def.library.function[-1].node_def[0].op = first
  with pytest.raises(errors.InvalidGraphError, match='calls itself'):
    inlining.inline(graph_def, ('out',), 'g.pb')


@tf.function(input_signature=[tf.TensorSpec((5, 5))])
def _branching(x):
  _, x = tf.while_loop(lambda i, _: i < 3, lambda i, x:
                       (i + 1, tf.matmul(x, x)), (0, x))
  x = tf.cond(x[0, 0] > 0, lambda: x * 2, lambda: x)
  return tf.switch_case(tf.cast(x[0, 0], tf.int32),
                        [lambda: x, lambda: x + 1, lambda: x * 3])


# Regression: each of the first three ended the process in TensorFlow.
_LIES = {
    'unknown': lambda function, signature: function.ClearField('name'),
    'an argument less': lambda function, signature: signature.input_arg.pop(),
    'a result less': lambda function, signature: signature.output_arg.pop(),
    'an argument more': lambda function, signature: signature.input_arg.add(),
    'a result more': lambda function, signature: signature.output_arg.add(),
}


@pytest.mark.parametrize('lie', _LIES)
@pytest.mark.parametrize('op, key',
                         [('While', 'cond'), ('While', 'body'),
                          ('If', 'then_branch'), ('If', 'else_branch'),
                          ('Case', 'branches')])
def test_loops_and_conditions_that_lie_are_refused(op, key, lie):
  concrete = _branching.get_concrete_function()
  graph_def = concrete.graph.as_graph_def()
  result = concrete.outputs[0].op.name
  inlining.inline(graph_def, [result], 'graph.pb')
  node = next(n for n in graph_def.node if n.op in (op, f'Stateless{op}'))
  attr = node.attr[key]
  function = attr.list.func[1] if op == 'Case' else attr.func
  signature = next(f.signature for f in graph_def.library.function
                   if f.signature.name == function.name)
  _LIES[lie](function, signature)
  with pytest.raises(errors.InvalidGraphError, match=node.name):
    inlining.inline(graph_def, [result], 'graph.pb')
