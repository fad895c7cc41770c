import numpy as np

from gdp_grappler.placers.search.moves import neighbourhood


def test_heavy_edges_are_joined_sooner_and_the_heaviest_always():
  found = neighbourhood.eagerness(np.array([5., 1., 9., 5.]))
  np.testing.assert_allclose(found, [.6, .4, 1., .8])
  assert neighbourhood.eagerness(np.zeros(0)).shape == (0,)


def test_the_better_of_two_changes_has_its_way():
  changed = np.array([[1, 0, 0, 0], [2, 2, 0, 0], [0, 3, 3, 0]])
  found = neighbourhood.unions(np.zeros(4, int), changed)
  assert [row.tolist() for row in found] == [[1, 2, 0, 0], [1, 2, 3, 0]]


def test_a_union_takes_two():
  assert neighbourhood.unions(np.zeros(2, int), np.array([[1, 0]])) == []
