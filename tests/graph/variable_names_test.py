import pathlib

import numpy as np
from tensorflow.core.framework import graph_pb2

from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph import variable_names
from gdp_grappler.graph.sources import sources

_TESTDATA = pathlib.Path(__file__).parents[1] / 'testdata'


def test_arguments_keep_the_names_of_their_variables():
  graph_def = graph_pb2.GraphDef()
  for name in ('unknown', 'dense/kernel', 'x'):
    graph_def.node.add(name=name, op='_Arg')
  variable_names.mark(graph_def.node[0], 'dense/bias')
  variable_names.mark(graph_def.node[1], 'dense/kernel')
  read = graph_pb2.GraphDef.FromString(graph_def.SerializeToString())
  # The name of a variable is not written if it is the name of the node.
  assert [variable_names.of(node) for node in read.node
         ] == ['dense/bias', '', '']
  assert [*map(variable_names.is_marked, read.node)] == [True, True, False]


def _read(name):
  return graph_def_io.read(sources.load(str(_TESTDATA / name)))


def test_variables_without_names_are_called_after_what_reads_them():
  # A report was full of "unknown_42".
  graph = _read('dense_train_step.pb')
  found = dict(zip(graph.names, graph.variables))
  assert found['unknown'] == 'sequential_1/dense_1/variable'
  assert found['unknown_3'] == 'sequential_1/dense_1_2/BiasAdd_variable'
  # Adam has two slots for each.
  assert sorted(name for name in graph.variables
                if name.startswith('sequential_1/dense_1/variable')) == [
                    'sequential_1/dense_1/variable',
                    'sequential_1/dense_1/variable/slot_1',
                    'sequential_1/dense_1/variable/slot_2'
                ]
  assert found['iterator'] == ''


def test_a_group_is_called_after_the_kernel_and_not_after_a_slot():
  graph = _read('dense_train_step.pb')
  kernel = graph.names.index('unknown')
  members = np.flatnonzero(graph.groups == graph.groups[kernel])
  # A slot of the same size comes first.
  assert graph.param_bytes[members[0]] == graph.param_bytes[kernel]
  assert members[0] != kernel and graph.holder(members) == kernel


def test_variables_of_a_loop_keep_apart():
  found = set(_read('lstm_train_step.pb').variables)
  assert 'embedding_1/GatherV2_variable/slot_2' in found
  assert 'lstm/while/variable' in found


def test_what_the_name_says_is_not_said_twice():
  node = graph_pb2.GraphDef().node.add(name='dense/kernel', op='VarHandleOp')
  variable_names.mark(node, 'dense/kernel')
  assert variable_names.of(node) == ''
