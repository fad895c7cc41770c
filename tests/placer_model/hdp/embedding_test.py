import numpy as np
import pytest

from helpers import graphs
from placer_model.hdp import embedding


def _naive_groups(graph, grouping, k, max_outputs):
  """What `GraphEmbedder.groups` promises, op by op and edge by edge."""
  vocabulary = sorted(set(graph.op_types))
  types = np.zeros((k, len(vocabulary)))
  sizes = np.zeros((k, max_outputs))
  outputs = np.zeros((k, 1))
  to = np.zeros((k, k))
  for op, op_type in enumerate(graph.op_types):
    group = grouping[graph.groups[op]]
    types[group, vocabulary.index(op_type)] += 1
    own = [t for t, o in enumerate(graph.tensor_ops) if o == op]
    outputs[group] += len(own)
    for number, tensor in enumerate(own):
      column = min(number, max_outputs - 1)
      sizes[group, column] += graph.tensor_bytes[tensor]
  for source, target in graph.edges:
    a, b = grouping[graph.groups[[source, target]]]
    to[a, b] = float(a != b) or to[a, b]
  contents = np.log1p(np.concatenate([types, sizes, outputs], axis=1))
  contents /= np.maximum(contents.max(axis=0), 1e-9)
  return np.concatenate([contents, to, to.T], axis=1)


@pytest.mark.parametrize('seed', range(3))
def test_group_embedding_agrees_with_the_oracle(seed):
  graph = graphs.random_graph(seed, 60)
  k = 7
  grouping = np.random.default_rng(seed).integers(k - 1, size=graph.num_groups)
  for max_outputs in (1, 3):
    got = embedding.GraphEmbedder(graph, max_outputs, 4, 1.).groups(grouping, k)
    np.testing.assert_allclose(got,
                               _naive_groups(graph, grouping, k, max_outputs),
                               rtol=1e-6)
    assert not got[k - 1].any()  # no members


def test_unit_embedding_by_hand():
  # op0 -> op1 (8 bytes), op0 -> op2 (large); op1 and op2 are one unit.
  graph = graphs.make_graph([(0, 1, 8), (0, 2, 1000, 1)], groups=[0, 1, 1],
                            op_types=['B', 'A', 'A'])
  units = embedding.GraphEmbedder(graph, 2, 2, 10.).units
  np.testing.assert_allclose(units, [[
      0.,
      np.log(2),
      np.log(9) / 20,
      np.log(1001) / 20,
      np.log(3), 5., 10., 0
  ], [np.log(3), 0., 0., 0., 0., 10., -5., 0.]], rtol=1e-6)


def test_heaviest_neighbours_come_first_and_the_rest_is_cut():
  graph = graphs.make_graph([(0, 3, 1), (1, 3, 9, 0), (2, 3, 5)])
  units = embedding.GraphEmbedder(graph, 1, 2, 4.).units
  np.testing.assert_allclose(units[3, -2:], [-2., -3.])


def test_graph_without_edges():
  graph = graphs.make_graph(num_ops=3)
  embedder = embedding.GraphEmbedder(graph, 2, 2, 1.)
  assert embedder.units.shape == (3, 1 + 3 + 1 + 2)
  rows = embedder.groups(np.array([0, 0, 1]), 2)
  assert rows.shape == (2, 1 + 3 + 4) and np.isfinite(rows).all()
