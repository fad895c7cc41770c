"""What C++ does with a graph is what the naive Python does."""

from __future__ import annotations

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.features import featurizer
from gdp_grappler.graph import coarsening
from gdp_grappler.graph import native_graph
from gdp_grappler.graph import union_find
from helpers import graphs
from helpers import naive_graphs

_SEEDS = st.integers(0, (1 << 31) - 1)


def _graph(seed, ops, groups=None):
  """Random, with tensors of few sizes, so that many are equal."""
  rng = np.random.default_rng(seed)
  edges = [(int(a), int(b), int(rng.choice((0, 8, 1500, 1 << 14, 1 << 20))))
           for a, b in rng.integers(ops, size=(2 * ops, 2)) if a < b]
  edges += [(int(a), int(b)) for a, b in rng.integers(ops, size=(3, 2)) if a < b
           ]
  # Numbers of ops are not an order of them.
  names = rng.permutation(ops)
  edges = [(int(names[e[0]]), int(names[e[1]]), *e[2:]) for e in edges]
  of_ops = rng.integers(groups, size=ops) if groups else np.arange(ops)
  _, of_ops = np.unique(of_ops, return_inverse=True)
  return graphs.make_graph(edges, ops, groups=of_ops), rng


@hypothesis.settings(max_examples=150, deadline=None)
@hypothesis.given(seed=_SEEDS, ops=st.integers(1, 60))
def test_the_same_order_and_paths(seed, ops):
  graph, rng = _graph(seed, ops)
  assert graph.topological_order.tolist() == naive_graphs.order(graph)
  seconds = rng.choice((0., 1e-6, 1e-3, rng.random()), ops)
  down, up = featurizer.path_ranks(graph, seconds)
  assert (down.tolist(), up.tolist()) == naive_graphs.paths(graph, seconds)


@hypothesis.settings(max_examples=100, deadline=None)
@hypothesis.given(seed=_SEEDS, ops=st.integers(1, 60))
def test_the_same_ranks_and_depth_first_order(seed, ops):
  graph, rng = _graph(seed, ops)
  seconds = rng.choice((0., 1e-6, 1e-3, rng.random()), ops)
  edge_s = seconds[graph.edges[:, 0]] + rng.random(len(graph.edges))
  ranks = native_graph.ranks(graph.edges, graph.topological_order, edge_s,
                             seconds)
  assert ranks.tolist() == naive_graphs.ranks(graph, edge_s, seconds)
  places = native_graph.depth_first(ops, graph.edges)
  assert places.tolist() == naive_graphs.depth_first(graph)


@hypothesis.settings(max_examples=200, deadline=None)
@hypothesis.given(seed=_SEEDS, ops=st.integers(1,
                                               60), groups=st.integers(0, 40),
                  devices=st.integers(1, 10), target=st.integers(1, 12),
                  share=st.integers(1, 8), light=st.sampled_from((0., .1, .7)))
def test_the_same_units(seed, ops, groups, devices, target, share, light):
  graph, rng = _graph(seed, ops, groups)
  seconds = rng.choice((1e-7, 1e-3, rng.random()), (ops, devices))
  allowed = rng.random((graph.num_groups, devices)) < .9
  config = coarsening.CoarseningConfig(target, share, light)
  units = coarsening.coarsen(graph, allowed, seconds, config)
  assert units.dtype == np.int32
  expected = naive_graphs.coarsen(graph, allowed, seconds, config)
  assert units.tolist() == expected.tolist()


def test_a_cycle_is_named():
  graph = graphs.make_graph([(0, 1, 8), (1, 2, 8), (2, 1, 8)])
  with pytest.raises(errors.InvalidGraphError, match='a cycle near "op1"'):
    _ = graph.topological_order


@hypothesis.settings(max_examples=100, deadline=None)
@hypothesis.given(seed=_SEEDS, count=st.integers(1, 40),
                  edges=st.integers(0, 40))
def test_the_same_components(seed, count, edges):
  pairs = np.random.default_rng(seed).integers(count, size=(edges, 2))
  sets = union_find.UnionFind(count)
  for a, b in pairs.tolist():
    sets.join(a, b)
  found = native_graph.components(count, pairs)
  assert found.tolist() == [sets.find(item) for item in range(count)]
