from gdp_grappler.graph.control_flow import merges
from helpers import graphs


def _order(types, executions, tensors=(1, 2)):
  """The producers of the last op, in the order of its inputs."""
  last = len(types)
  edges = [(op, last, size) for op, size in enumerate(tensors)]
  graph = graphs.make_graph(edges, op_types=[*types, 'Merge'])
  order = merges.live_first(graph.replace(executions=[*executions, 1]))
  return graph.edges[order, 0].tolist()


def test_the_branch_that_runs_comes_first():
  assert _order(['Sin', 'Cos'], [1, 0]) == [0, 1]
  assert _order(['Sin', 'Cos'], [0, 1]) == [1, 0]


def test_a_switch_comes_before_dead_inputs_and_after_live_ones():
  assert _order(['Switch', 'Cos'], [1, 1]) == [1, 0]
  assert _order(['Cos', 'Switch'], [0, 1]) == [1, 0]


def test_other_edges_keep_their_order():
  graph = graphs.make_graph([(0, 2, 1), (1, 2, 1), (0, 3), (1, 3)],
                            op_types=['Sin', 'Sin', 'AddN',
                                      'Merge']).replace(executions=[0, 1, 1, 1])
  assert merges.live_first(graph).tolist() == [0, 1, 2, 3]
