"""Nodes that are not what their ops say are found before TensorFlow looks."""

from __future__ import annotations

import re

import pytest
import tensorflow as tf
from tensorflow.core.framework import types_pb2

from gdp_grappler import errors
from gdp_grappler.graph import node_validation
from gdp_grappler.graph.sources import sources


@tf.function(input_signature=[tf.TensorSpec((4, 4), name='x')])
def _step(x):
  # At a place of its own in the library, as a function that is called.
  y = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, tf.matmul(y, y)),
                    (0, x))[1]
  return tf.reduce_sum(tf.nn.softmax(y) + 1.)


def _graph_def():
  return _step.get_concrete_function().graph.as_graph_def()


def _node(graph_def, op):
  nodes = [*graph_def.node]
  for function in graph_def.library.function:
    nodes += function.node_def
  return next(node for node in nodes if node.op == op)


def _control_first(graph_def):
  node = _node(graph_def, 'MatMul')
  node.input.insert(0, f'^{node.input[0].split(":")[0]}')


def _no_value(graph_def):
  del _node(graph_def, 'Const').attr['value']


def _two_types(graph_def):
  _node(graph_def, 'Const').attr['dtype'].type = types_pb2.DT_STRING


def _torn_value(graph_def):
  _node(graph_def, 'Const').attr['value'].tensor.tensor_content = b'\1\2\3'


def _list_for_type(graph_def):
  _node(graph_def, 'Softmax').attr['T'].list.type.append(types_pb2.DT_FLOAT)


def _negative(graph_def):
  _node(graph_def, 'Placeholder').attr['shape'].shape.dim[0].size = -7


def _one_more(graph_def):
  node = _node(graph_def, 'Softmax')
  node.input.append(node.input[0])


def _another_type(graph_def):
  text = _node(graph_def, 'Const')
  text.attr['dtype'].type = types_pb2.DT_INT64
  text.attr['value'].tensor.dtype = types_pb2.DT_INT64


def _no_such_output(graph_def):
  node = _node(graph_def, 'Softmax')
  # A loop has as many outputs as variables.
  node.input[0] = node.input[0].split(':')[0] + ':9'


def _no_such_output_in_a_function(graph_def):
  node = _node(graph_def, 'MatMul')
  add = next(n for f in graph_def.library.function for n in f.node_def
             if n.op == 'AddV2')
  node.input[0] = f'{add.name}:z:1'


@pytest.mark.parametrize('change, said', [
    (_another_type, r'it takes int32, but \S+ is int64'),
    (_no_such_output, '"Softmax": it reads .*:9, but there are only'),
    (_no_such_output_in_a_function, 'MatMul": it reads .*z:1'),
    (_control_first, 'input'),
    (_no_value, "missing attr 'value'"),
    (_two_types, 'another type'),
    (_torn_value, '"value" is no tensor'),
    (_list_for_type, 'node "Softmax": .*list'),
    (_negative, '"shape" is no shape'),
    (_one_more, 'node "Softmax": '),
])
def test_what_is_wrong_is_said(tmp_path, change, said):
  """Regression: on some of them TensorFlow's optimizer ended the process."""
  graph_def = _graph_def()
  assert not node_validation.problem(graph_def)
  change(graph_def)
  why = node_validation.problem(graph_def)
  assert re.search(said, why), why
  assert 'Op<' not in why and len(why) < 300
  path = tmp_path / 'g.pb'
  path.write_bytes(graph_def.SerializeToString())
  with pytest.raises(errors.InvalidGraphError):
    sources.load(str(path))


def test_what_may_be_missing_or_unknown_is_passed_over():
  graph_def = _graph_def()
  node = _node(graph_def, 'MatMul')
  del node.attr['transpose_a']
  node.attr['of_a_later_tensorflow'].i = 3
  node.attr['_own'].s = b'anything'
  # Grappler's, for a size that is like another one's.
  node.attr['_input_shapes'].list.shape.add().dim.add(size=-2)
  graph_def.node.add(name='other', op='OfALibraryThatIsNotLoaded')
  assert not node_validation.problem(graph_def)


def test_functions_are_ops_too():
  graph_def = _graph_def()
  name = graph_def.library.function[0].signature.name
  call = graph_def.node.add(name='call', op=name)
  assert 'node "call"' in node_validation.problem(graph_def)
  signature = graph_def.library.function[0].signature
  for number, argument in enumerate(signature.input_arg):
    given = graph_def.node.add(name=f'given_{number}', op='Placeholder')
    given.attr['dtype'].type = argument.type
    call.input.append(given.name)
  assert not node_validation.problem(graph_def)
  # The types that a function takes are its own.
  call.input[:] = call.input[::-1]
  assert 'it takes' in node_validation.problem(graph_def)


def test_a_long_message_is_cut():
  graph_def = _graph_def()
  node = _node(graph_def, 'Softmax')
  node.name = 'x' * 5000
  node.input.append(node.input[0])
  assert len(node_validation.problem(graph_def)) < 1000
