from gdp_grappler.placers.search.memory import memory_estimate
from helpers import graphs


def test_the_share_that_is_alive():
  # Two tensors of a chain are alive at the same time.
  graph = graphs.chain(5, 100, param_bytes=[7, 0, 0, 0, 0])
  assert memory_estimate.alive_share(graph) == .5
  assert memory_estimate.alive_share(graphs.make_graph(num_ops=3)) == 1
  assert memory_estimate.group_bytes(graph, .5).tolist() == [57, 50, 50, 50, 0]


def test_what_is_handed_on_takes_no_memory_and_keeps_that_of_its_input():
  # A variable is read, and the value is needed at the end of a chain.
  edges = [(0, 1, 8), (1, 4, 100), (1, 2, 100), (2, 3, 40), (3, 4, 40)]
  graph = graphs.make_graph(
      edges, param_bytes=[100, 0, 0, 0, 0],
      op_types=['VarHandleOp', 'ReadVariableOp', *['MatMul'] * 3])
  assert memory_estimate.group_bytes(graph, 1.).tolist() == [100, 0, 40, 40, 0]
  # `Identity` keeps the 100 bytes of op 0 until the end of op 3.
  kept = graphs.make_graph([(0, 1, 100), (1, 3, 100), (0, 2, 100), (2, 3, 50)],
                           op_types=['MatMul', 'Identity', 'MatMul', 'MatMul'])
  assert memory_estimate.alive_share(kept) == 1.
  assert memory_estimate.group_bytes(kept, 1.).tolist() == [100, 0, 50, 0]


def test_a_constant_holds_all_its_bytes():
  """Only a share of a constant once counted, but a step frees no constant."""
  graph = graphs.chain(5, 100, op_types=['Const', *['MatMul'] * 4])
  assert memory_estimate.group_bytes(graph, 0.).tolist() == [100, 0, 0, 0, 0]
  assert memory_estimate.group_bytes(graph, .5).tolist() == [100, 50, 50, 50, 0]
  assert memory_estimate.alive_share(graph) == 2 / 3


def test_a_merge_keeps_the_memory_of_the_branch_that_runs():
  """The estimate once freed the memory before the readers of the Merge."""
  graph = graphs.make_graph([(0, 2, 0), (1, 2, 100), (2, 4, 100), (2, 3, 0),
                             (3, 4, 100)], op_types=[
                                 'MatMul', 'MatMul', 'Merge', 'MatMul', 'MatMul'
                             ]).replace(executions=[0, 1, 1, 1, 1])
  assert memory_estimate.alive_share(graph) == 1.
