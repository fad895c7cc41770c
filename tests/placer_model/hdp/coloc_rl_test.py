import numpy as np
import pytest

from helpers import graphs
from placer_model.hdp import coloc_rl


def _groups(graph, max_groups, allowed=None, seconds=None):
  if allowed is None:
    allowed = np.ones((graph.num_groups, 2), bool)
  if seconds is None:
    seconds = np.ones(graph.num_ops)
  return coloc_rl.hand_made_groups(graph, allowed, seconds, max_groups)


def test_goes_with_its_only_consumer():
  # 0 -> 1 -> {2, 3}, 2 -> 4, 3 -> 4: only 1 has two consumers.
  graph = graphs.make_graph([(0, 1, 8), (1, 2, 8), (1, 3, 8), (2, 4, 8),
                             (3, 4, 8)])
  assert _groups(graph, 9).tolist() == [0, 0, 1, 1, 1]


def test_stays_apart_where_devices_differ():
  allowed = np.array([[True, False], [True, True], [True, True]])
  assert _groups(graphs.chain(3), 9, allowed).tolist() == [0, 1, 1]


def test_layers_take_their_gradients_along():
  names = [
      f'{scope}{layer}/cell/op{i}{suffix}'
      for scope, suffix in (('', ''), ('gradients/', '_grad'))
      for layer in ('one', 'two') for i in range(2)
  ]
  edges = [(a, b, 8) for a in range(8) for b in range(a + 1, 8)]
  graph = graphs.make_graph(edges[:-1], names=names)  # nothing is consumed once
  assert _groups(graph, 2).tolist() == [0, 0, 1, 1, 0, 0, 1, 1]


@pytest.mark.parametrize('max_groups', [1, 5, 40])
def test_numbered_in_topological_order(max_groups):
  graph = graphs.random_graph(1, 200)
  groups = _groups(graph, max_groups, seconds=graph.flops)
  assert groups.shape == (graph.num_groups,)
  assert groups.max() == max_groups - 1
  seen = groups[graph.groups][graph.topological_order]
  _, first = np.unique(seen, return_index=True)
  assert (np.diff(first) > 0).all()
