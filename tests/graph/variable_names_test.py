from tensorflow.core.framework import graph_pb2

from gdp_grappler.graph import variable_names


def test_arguments_keep_the_names_of_their_variables():
  graph_def = graph_pb2.GraphDef()
  for name, index in (('unknown', 1), ('unknown_0', 0), ('x', 2)):
    graph_def.node.add(name=name, op='_Arg').attr['index'].i = index
  graph_def.node.add(name='y', op='Identity')
  variable_names.mark_arguments(graph_def, {0: 'dense/kernel', 1: 'dense/bias'})
  read = graph_pb2.GraphDef.FromString(graph_def.SerializeToString())
  assert [variable_names.of(node) for node in read.node
         ] == ['dense/bias', 'dense/kernel', '', '']


def test_what_the_name_says_is_not_said_twice():
  node = graph_pb2.GraphDef().node.add(name='dense/kernel', op='VarHandleOp')
  variable_names.mark(node, 'dense/kernel')
  assert variable_names.of(node) == ''
