import numpy as np
import pytest

from gdp_grappler.graph import coarsening
from helpers import graphs

_SMALL = coarsening.CoarseningConfig(min_units=4, groups_per_unit=4)


def _coarsen(graph, allowed=None, seconds=None, config=_SMALL):
  if allowed is None:
    allowed = np.ones((graph.num_groups, 2), bool)
  if seconds is None:
    seconds = np.ones((graph.num_ops, 2))
  return coarsening.coarsen(graph, allowed, seconds, config)


@pytest.mark.parametrize('seed', range(4))
def test_units_are_unions_of_groups_of_one_kind(seed):
  graph = graphs.random_graph(seed, 300)
  allowed = np.ones((graph.num_groups, 2), bool)
  allowed[::3, 1] = False
  units = _coarsen(graph, allowed)
  for group in range(graph.num_groups):
    assert len(set(units[graph.groups == group])) == 1
  for unit in range(units.max() + 1):
    rows = allowed[graph.groups[units == unit]]
    assert (rows == rows[0]).all()
  assert units.max() + 1 < graph.num_groups


@pytest.mark.parametrize('seed', range(3))
def test_units_are_numbered_in_topological_order(seed):
  graph = graphs.random_graph(seed, 300)
  for units in (_coarsen(graph), coarsening.groups_as_units(graph)):
    seen = list(dict.fromkeys(units[graph.topological_order].tolist()))
    assert seen == list(range(units.max() + 1))


def test_small_graphs_keep_their_groups():
  graph = graphs.chain(4, groups=[0, 1, 1, 2])
  expected = [0, 1, 1, 2]
  assert _coarsen(graph).tolist() == expected
  assert coarsening.groups_as_units(graph).tolist() == expected


def test_the_largest_tensors_are_kept_inside():
  edges = [(i, i + 1, 1 << 20 if i % 2 == 0 else 2048) for i in range(7)]
  units = _coarsen(graphs.make_graph(edges))
  assert units.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


def test_no_unit_outgrows_a_fair_share_unless_it_was_so_before():
  graph = graphs.chain(40, tensor_bytes=1 << 20)
  counts = np.bincount(_coarsen(graph))
  assert counts.max() <= 40 / 10


def test_light_ops_join_what_they_feed():
  graph = graphs.make_graph([(i, i + 1, 2048) for i in range(9)] + [(10, 5, 4)])
  seconds = np.ones((11, 2))
  seconds[10] = 1e-6
  units = _coarsen(graph, seconds=seconds)
  assert units[10] == units[5]


def _nested(graph, aims, allowed=None):
  if allowed is None:
    allowed = np.ones((graph.num_groups, 2), bool)
  return coarsening.nested(graph, allowed, np.ones((graph.num_ops, 2)), aims)


@pytest.mark.parametrize('seed', range(3))
def test_of_nested_units_each_is_part_of_one_before(seed):
  graph = graphs.random_graph(seed, 300)
  found = _nested(graph, (3, 12, 40, 100))
  sizes = [units.max() + 1 for units in found]
  assert sizes == sorted(sizes) and sizes[0] < sizes[-1]
  for coarse, fine in zip(found, found[1:]):
    assert len(set(zip(fine, coarse))) == len(set(fine))


def test_nested_units_end_at_the_groups():
  graph = graphs.chain(6)
  assert _nested(graph, (2, 6))[-1].tolist() == list(range(6))


def test_nested_units_are_of_one_kind():
  graph = graphs.random_graph(0, 300)
  allowed = np.ones((graph.num_groups, 2), bool)
  allowed[::3, 1] = False
  for units in _nested(graph, (4, 50), allowed):
    for unit in range(units.max() + 1):
      rows = allowed[graph.groups[units == unit]]
      assert (rows == rows[0]).all()


def test_units_by_their_kind():
  graph = graphs.random_graph(0, 3000)
  allowed = np.ones((graph.num_groups, 2), bool)
  seconds = np.ones((graph.num_ops, 2))
  counts = [
      coarsening.units(kind, graph, allowed, seconds).max() + 1
      for kind in (coarsening.NESTED, coarsening.COARSE, coarsening.FINE)
  ]
  assert counts == sorted(counts) and counts[-1] == graph.num_groups
  assert len(set(counts)) == 3
