import numpy as np

from gdp_grappler.graph.structure import variable_uses
from helpers import graphs
from helpers import unrolled


def _uses(graph, order=None):
  if order is None:
    order = graph.topological_order
  return variable_uses.find(graph, variable_uses.reads(graph), order)


def test_uses_of_a_variable_are_counted():
  graph = graphs.make_graph([(0, 1, 0), (1, 2, 8), (2, 3, 8), (0, 4, 0),
                             (4, 3, 8), (5, 3, 8)], op_types=[
                                 'VarHandleOp', 'ReadVariableOp', 'MatMul',
                                 'MatMul', 'ReadVariableOp', 'VariableV2'
                             ], param_bytes=[100, 0, 0, 0, 0, 50])
  uses = _uses(graph)
  # Op 3 uses two variables; the larger one counts.
  assert uses.variables.tolist() == [-1, -1, 0, 0, -1, -1]
  assert uses.repetitions.tolist() == [-1, -1, 0, 1, -1, -1]
  assert uses.owners.tolist() == [0, 0, -1, -1, 0, -1]
  assert uses.reads.tolist() == [True, True, False, False, True, True]


def test_changing_a_variable_is_no_use():
  graph = graphs.make_graph([(0, 1, 0), (2, 1, 8), (0, 3, 0), (4, 3, 8)], 5,
                            op_types=[
                                'VarHandleOp', 'AssignVariableOp', 'MatMul',
                                'ResourceApplyAdam', 'MatMul'
                            ], param_bytes=[100, 0, 0, 0, 0])
  assert (_uses(graph).variables < 0).all()


def test_variables_of_a_function_are_its_arguments():
  graph = graphs.make_graph([(0, 1, 0), (1, 2, 8), (3, 2, 8)], op_types=[
      '_Arg', 'ReadVariableOp', 'MatMul', '_Arg'
  ], param_bytes=[100, 0, 0, 0])
  uses = _uses(graph)
  assert uses.variables.tolist() == [-1, -1, 0, -1]
  assert uses.reads.tolist() == [True, True, False, False]


def test_an_embedding_uses_its_handle():
  graph = graphs.make_graph([(0, 1, 0)],
                            op_types=['VarHandleOp',
                                      'ResourceGather'], param_bytes=[100, 0])
  assert _uses(graph).variables.tolist() == [-1, 0]


def test_ops_that_hold_what_they_work_with():
  graph = graphs.chain(3, param_bytes=[10, 0, 10])
  uses = _uses(graph)
  assert uses.variables.tolist() == [0, -1, 1]
  assert not uses.reads.any()


def _periods(kinds):
  nothing = np.zeros(0, int)
  return variable_uses.VariableUses(nothing, nothing, nothing, nothing,
                                    np.array(kinds, int)).periods().tolist()


def test_a_sequence_that_repeats_itself():
  assert _periods([9, 1, 2, 1, 2, 1, 2, 8]) == [-1, 0, 0, 1, 1, 2, 2, 3]
  assert _periods([1, 2, 1, 2, 7, 8, 9]) == [0, 0, 1, 1, -1, -1, -1]
  assert _periods([1, 1, 1]) == [0, 1, 2]
  assert _periods([1, 2, 3]) == [-1, -1, -1]
  assert _periods([]) == []
  assert _periods([5]) == [-1]


def test_kinds_are_of_size_and_use():
  uses = _uses(unrolled.make(3, 2).graph)
  assert uses.kinds.tolist() == [0, 0, 0]
