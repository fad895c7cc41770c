import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import graph_pb2
from tensorflow.core.framework import node_def_pb2

from gdp_grappler.graph.tables import parts

_FLOAT = parts.Type(tf.float32.as_datatype_enum)


def _run(writer, tensor):
  with tf.Graph().as_default() as graph:
    tf.import_graph_def(writer.graph_def(graph_pb2.GraphDef()), name='')
    with tf.compat.v1.Session(graph=graph) as session:
      return session.run(tensor)


def test_parts_have_the_shape_of_the_whole_but_for_one_axis():
  split = parts.Split(('a', 'b'), 1, (3, 2), (4, 5), _FLOAT)
  assert [split.shape_of(i) for i in range(2)] == [(4, 3), (4, 2)]


@pytest.mark.parametrize('axis, sizes', [(0, (3, 1)), (1, (2, 2, 1))])
def test_what_is_cut_and_joined_is_what_it_was(axis, sizes):
  value = np.arange(20, dtype=np.float32).reshape(4, 5)
  writer = parts.Writer(['x'])
  whole = writer.constant(value, 'whole', _FLOAT)
  split = parts.Split((), axis, sizes, (4, 5), _FLOAT)
  names = writer.cut(whole, split, 'cut')
  assert len(names) == len(sizes)
  joined = writer.joined(parts.Split(names, axis, sizes, (4, 5), _FLOAT), 'x',
                         exactly=True)
  assert joined == 'x'
  np.testing.assert_array_equal(_run(writer, 'x:0'), value)


def test_names_are_not_taken_twice():
  writer = parts.Writer(['a'])
  assert [writer.add('NoOp', name, ()) for name in ('a', 'a', 'b')
         ] == ['a_1', 'a_2', 'b']
  assert writer.add('NoOp', 'a', (), exactly=True) == 'a'


def test_a_node_like_another_does_not_say_where_that_was():
  node = node_def_pb2.NodeDef(name='x', op='Cast')
  for key in ('SrcT', 'DstT'):
    node.attr[key].type = _FLOAT.number
  node.attr['_class'].list.s.append(b'loc:@y')
  writer = parts.Writer(['x'])
  writer.add_like(node, 'x/part_0', ['y'], ['^z'])
  made, = writer.nodes
  assert set(made.attr) == {'SrcT', 'DstT'} and list(made.input) == ['y', '^z']


def test_numbers_types_and_shapes_are_different_attributes():
  assert parts.attribute(3).i == 3
  assert parts.attribute(True).b
  assert parts.attribute(parts.INT32).type == 3
  assert [d.size for d in parts.attribute((4, 5)).shape.dim] == [4, 5]
