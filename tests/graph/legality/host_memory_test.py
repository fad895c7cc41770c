import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph import node_table
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.legality import host_memory
from helpers import graph_defs


def _of(op, *types, **attributes):
  """Inputs and outputs of an op on the host, with its attribute T if given."""
  if types:
    attributes['T'] = {'type': types[0].as_datatype_enum}
  return tuple(host_memory.of(graph_defs.node('n', op, **attributes)))


@pytest.mark.parametrize('op, dtype, inputs, outputs', [
    ('Switch', tf.float32, (False, True), (False, False)),
    ('Merge', tf.float32, (False, False), (False, True)),
    ('Shape', tf.float32, (False,), (True,)),
    ('Reshape', tf.float32, (False, True), (False,)),
    ('LoopCond', None, (True,), (True,)),
    ('AddV2', tf.int32, (True, True), (True,)),
    ('AddV2', tf.float32, (False, False), (False,)),
    ('StringUpper', None, (), ()),
])
def test_what_kernels_of_gpus_have_on_the_host(op, dtype, inputs, outputs):
  attributes = {'N': {'i': 2}} if op == 'Merge' else {}
  types = () if dtype is None else (dtype,)
  assert _of(op, *types, **attributes) == (inputs, outputs)


def test_handles_of_resources_are_always_there():
  attributes = {'dtype': {'type': tf.float32.as_datatype_enum}}
  assert _of('VarHandleOp', **attributes) == ((), (True,))
  assert _of('ReadVariableOp', **attributes) == ((True,), (False,))


def test_calls_of_functions_have_their_int32_there():
  types = {
      'list': {
          'type': [
              tf.int32.as_datatype_enum, tf.float32.as_datatype_enum,
              tf.resource.as_datatype_enum
          ]
      }
  }
  assert _of('PartitionedCall', Tin=types,
             Tout=types) == ((True, False, True), (True, False, True))


def _graph():
  with tf.Graph().as_default() as graph:
    x = tf.compat.v1.placeholder(tf.float32, [4, 8], 'x')
    positive = tf.reduce_sum(x, name='sum') > 0
    switched = tf.raw_ops.Switch(data=x, pred=positive, name='switch')
    tf.reshape(switched.output_true, tf.shape(x, name='shape'), name='reshape')
  return graph.as_graph_def()


def test_tensors_and_edges_of_a_graph():
  """The Const has the axes of the sum, which are int32."""
  table = node_table.NodeTable('g', _graph())
  starts = np.arange(len(table.names) + 1) * 2
  made = host_memory.made(table, starts)
  assert [table.names[t // 2] for t in np.flatnonzero(made)
         ] == ['Const', 'shape']
  names = [
      (table.names[source], table.names[target])
      for source, _, target in np.array(table.edges)[host_memory.read(table)]
  ]
  assert set(names) >= {('Greater', 'switch'), ('shape', 'reshape')}
  assert ('x', 'sum') not in names and ('switch', 'reshape') not in names


def test_an_op_graph_has_them():
  graph = graph_def_io.read(source_graph.SourceGraph('g', _graph()))
  names = np.array(graph.names)
  assert 'shape' in names[graph.tensor_ops[graph.made_on_host]]
  read = {tuple(pair) for pair in names[graph.edges[graph.read_on_host]]}
  assert read >= {('Greater', 'switch'), ('shape', 'reshape')}
