import numpy as np

from gdp_grappler.placers import group_graph
from helpers import graphs
from helpers import problems


def _build(graph, seconds, devices=(1, 2), message_bytes=0.):
  problem = problems.make(graph, seconds=seconds)
  return group_graph.build(graph, problem.busy_seconds, np.array(devices),
                           message_bytes)


def _edges(graph):
  starts, neighbours, size = graph.adjacency
  rows = range(graph.num_vertices)
  return {(row, int(neighbours[i])): size[i] for row in rows
          for i in range(starts[row], starts[row + 1])}


def test_vertices_weigh_seconds_and_edges_bytes():
  graph = _build(graphs.make_graph([(0, 1, 5), (1, 2, 7), (0, 2, 5)]),
                 np.array([1., 2., 3.]))
  assert graph.weights.tolist() == [1, 2, 3]
  assert _edges(graph) == {(0, 1): 5, (1, 0): 5, (1, 2): 7, (2, 1): 7,
                           (0, 2): 5, (2, 0): 5}


def test_a_tensor_counts_once_for_each_group_that_has_it():
  # Ops 1 and 2 are one group, which gets the tensor once.
  graph = _build(
      graphs.make_graph([(0, 1, 5), (0, 2, 5), (0, 3, 5), (1, 2, 100),
                         (0, 3, 8, 1)], groups=[0, 1, 1, 2]), 1.)
  assert graph.weights.tolist() == [1, 2, 1]
  assert _edges(graph) == {(0, 1): 5, (1, 0): 5, (0, 2): 13, (2, 0): 13}
  assert graph.net_bytes.tolist() == [5, 8]
  assert graph.net_pins.tolist() == [0, 1, 2, 0, 2]
  assert graph.net_starts.tolist() == [0, 3, 5]


def test_messages_and_control_edges():
  graph = _build(graphs.make_graph([(0, 1), (0, 2), (1, 2, 5)]), 1., (1, 2),
                 10.)
  assert _edges(graph)[0, 1] == _edges(graph)[0, 2] == 10
  assert _edges(graph)[1, 2] == 15


def test_what_a_branch_not_taken_makes_is_empty():
  graph = graphs.chain(3, 100).replace(executions=[0, 1, 1])
  assert _edges(_build(graph, 1.))[0, 1] == 0
  assert _edges(_build(graph, 1.))[1, 2] == 100


def test_weights_on_devices_of_different_speed():
  # The ops take 1 s and 3 s on GPU:0, and 12 s and 4 s on GPU:1. So the shares
  # of the first op are 1/4 and 3/4.
  graph = _build(graphs.chain(2), np.array([[9., 1., 12.], [9., 3., 4.]]))
  np.testing.assert_allclose(graph.weights, [2., 2.])


def test_integers_are_positive_and_bounded():
  weights = group_graph.integers(np.array([0., 1e-12, 3., 1.]))
  assert weights.tolist() == [1, 1, 3 << 28, 1 << 28]
  assert group_graph.integers(np.zeros(3)).tolist() == [1, 1, 1]
  assert not group_graph.integers(np.zeros(0)).size


def test_other_weights_keep_the_edges():
  graph = _build(graphs.chain(3), 1.)
  other = graph.reweighted(np.array([1., 2., 1.]))
  assert other.adjacency is graph.adjacency
  assert other.integer_weights.tolist() == [1 << 28, 1 << 29, 1 << 28]


def test_random_graphs_against_a_plain_count():
  source = graphs.random_graph(3, 120)
  graph = _build(source, 1.)
  expected = {}
  for tensor, op in enumerate(source.tensor_ops):
    users = {
        int(source.groups[c])
        for (_, c), t in zip(source.edges, source.edge_tensors) if t == tensor
    }
    for user in users - {int(source.groups[op])}:
      for pair in ((int(source.groups[op]), user), (user,
                                                    int(source.groups[op]))):
        expected[pair] = expected.get(pair, 0) + source.tensor_bytes[tensor]
  found = _edges(graph)
  assert {k: v for k, v in found.items() if v
         } == {k: v for k, v in expected.items() if v}


def test_no_ops_and_no_edges():
  nothing = _build(graphs.make_graph(), 1.)
  assert nothing.num_vertices == 0 and not nothing.adjacency[1].size
  lonely = _build(graphs.make_graph(num_ops=3), 1.)
  assert lonely.adjacency[0].tolist() == [0, 0, 0, 0]
