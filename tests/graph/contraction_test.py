from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import numpy as np
import pytest

from gdp_grappler.graph import contraction
from helpers import graphs
from helpers import unrolled


def test_a_tile_is_one_node_where_nothing_comes_between():
  # Tile 0 is two ops, the second of which needs the first; tile 1 as well.
  graph = graphs.make_graph([(0, 1, 8), (1, 2, 16), (2, 3, 32), (0, 3, 64, 1)],
                            flops=[1, 5, 3, 2], io_bytes=10, param_bytes=4)
  found = contraction.contract(graph, np.array([0, 0, 1, 1]))
  small = found.graph
  assert found.nodes.tolist() == [0, 0, 1, 1]
  assert small.names == ('op1', 'op2')
  assert small.op_types == (contraction.TYPE,) * 2
  assert small.groups.tolist() == [0, 1]
  assert small.flops.tolist() == [6, 5] and small.io_bytes.tolist() == [20, 20]
  assert small.param_bytes.tolist() == [8, 8]
  # The same node needs both tensors.
  assert small.edges.tolist() == [[0, 1]]
  assert small.tensor_bytes.tolist() == [16 + 64]
  seconds = np.array([[1., 10.], [2., 20.], [3., 30.], [4., 40.]])
  assert found.summed(seconds).tolist() == [[3, 30], [7, 70]]


def test_what_comes_back_to_a_tile_is_another_node():
  graph = graphs.make_graph([(0, 1, 8), (1, 2, 8)])
  found = contraction.contract(graph, np.array([0, 1, 0]))
  assert len(set(found.nodes.tolist())) == 3
  assert found.graph.num_groups == 2


def test_what_nobody_waits_for_is_apart():
  """Of a tile of two ops one is on the way, one is not."""
  graph = graphs.make_graph([(0, 1, 8), (0, 2, 8), (1, 3, 8)])
  found = contraction.contract(graph, np.array([0, 1, 1, 2]))
  assert len(set(found.nodes.tolist())) == 4


def test_a_tensor_is_sent_once_to_each_who_needs_it():
  # op0 makes two tensors: one for two tiles, one for one of them.
  graph = graphs.make_graph([(0, 1, 8), (0, 2, 8), (0, 1, 16, 1), (0, 1)])
  small = contraction.contract(graph, np.array([0, 1, 2])).graph
  data = small.edge_tensors >= 0
  sent = sorted((int(small.tensor_bytes[tensor]), int(consumer)) for tensor, (
      _, consumer) in zip(small.edge_tensors[data], small.edges[data]))
  assert sent == [(8, 1), (8, 2), (16, 1)]
  assert small.edges[~data].tolist() == [[0, 1]]


def test_what_does_not_run():
  graph = graphs.make_graph([(0, 1, 8), (1, 2, 8)
                            ]).replace(executions=np.array([0., 3., 3.]))
  small = contraction.contract(graph, np.array([0, 1, 2])).graph
  assert small.executions.tolist() == [0, 1, 1]
  assert sorted(small.tensor_bytes.tolist()) == [0, 8]


def test_an_empty_graph():
  found = contraction.contract(graphs.make_graph(), np.zeros(0, int))
  assert not found.graph.num_ops and not found.nodes.size


def test_gradients_of_weights_are_apart_from_those_of_inputs():
  step = unrolled.make(2, 3)
  tiles = np.unique(np.stack([step.layer, step.time]), axis=1,
                    return_inverse=True)[1].reshape(-1)
  nodes = contraction.contract(step.graph, tiles).nodes
  where = {name: node for name, node in zip(step.graph.names, nodes)}
  of = 'gradients/layer1/step1/MatMul_grad/MatMul'
  assert where[of] != where[f'{of}_1']


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 60), st.integers(1, 8))
def test_order_and_sizes_are_kept(seed, num_ops, count):
  graph = graphs.random_graph(seed, num_ops)
  rng = np.random.default_rng(seed)
  tiles = np.unique(rng.integers(0, count, graph.num_groups),
                    return_inverse=True)[1].reshape(-1)
  found = contraction.contract(graph, tiles)
  small, nodes = found.graph, found.nodes
  # No cycle, or this raises.
  assert len(small.topological_order) == small.num_ops == nodes.max() + 1
  assert (small.groups[nodes] == tiles[graph.groups]).all()
  assert small.num_groups == tiles.max() + 1
  for of, own in ((graph.flops, small.flops), (graph.io_bytes, small.io_bytes),
                  (graph.param_bytes, small.param_bytes)):
    assert own.sum() == pytest.approx(of.sum())
  ends = nodes[graph.edges]
  wanted = {tuple(pair) for pair in ends.tolist() if pair[0] != pair[1]}
  assert {tuple(pair) for pair in small.edges.tolist()} == wanted
  # Whatever leaves its node is sent, and no more than once to each node.
  data = graph.edge_tensors >= 0
  leaving = data & (ends[:, 0] != ends[:, 1])
  pairs = np.unique(
      np.stack([graph.edge_tensors[leaving], ends[leaving, 1]], axis=1), axis=0)
  sent = small.edge_tensors >= 0
  assert small.tensor_bytes[small.edge_tensors[sent]].sum() == (
      graph.tensor_bytes[pairs[:, 0]].sum())
