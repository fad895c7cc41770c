import random

import numpy as np
import pytest

from gdp_grappler.placers.search.moves import neighbourhood


def test_heavy_edges_are_joined_sooner_and_the_heaviest_always():
  found = neighbourhood.eagerness(np.array([5., 1., 9., 5.]))
  np.testing.assert_allclose(found, [.6, .4, 1., .8])
  assert neighbourhood.eagerness(np.zeros(0)).shape == (0,)


def test_sizes_range_from_one_to_most_every_order_of_magnitude_alike():
  rng = np.random.default_rng(0)
  drawn = [neighbourhood.random_size(30, rng) for _ in range(2000)]
  assert min(drawn) == 1 and max(drawn) == 30
  assert 3 <= np.median(drawn) <= 8  # The median is about the root of 30.


@pytest.mark.parametrize('size, expected', [(1, [2]), (3, [2, 3, 4]),
                                            (9, [2, 3, 4])])
def test_grows_along_edges_until_it_is_large_enough(size, expected):
  edges = {2: [(3, 1.)], 3: [(2, 1.), (4, 1.)], 4: [(3, 1.)]}
  found = neighbourhood.grown(2, size, edges.__getitem__, random.Random(0))
  assert sorted(found.tolist()) == expected


def test_light_edges_are_left_for_later():
  edges = {0: [(1, .05), (2, 1.)], 1: [(0, .05)], 2: [(0, 1.)]}
  ends = [
      neighbourhood.grown(0, 2, edges.__getitem__,
                          random.Random(seed)).tolist() for seed in range(200)
  ]
  assert sum(1 in end for end in ends) < 40


def test_what_may_not_go_stays():
  devices = np.array([0, 0, 1])
  allowed = np.array([[True, True], [True, False], [True, True]])
  found = neighbourhood.moved(devices, np.array([0, 1]), 1, allowed)
  assert found.tolist() == [1, 0, 1] and devices.tolist() == [0, 0, 1]


def test_the_better_of_two_changes_has_its_way():
  changed = np.array([[1, 0, 0, 0], [2, 2, 0, 0], [0, 3, 3, 0]])
  found = neighbourhood.unions(np.zeros(4, int), changed)
  assert [row.tolist() for row in found] == [[1, 2, 0, 0], [1, 2, 3, 0]]


def test_a_union_takes_two():
  assert neighbourhood.unions(np.zeros(2, int), np.array([[1, 0]])) == []
