import random

import numpy as np
import pytest

from placer_model.training import connected_sets


def test_sizes_range_from_one_to_most_every_order_of_magnitude_alike():
  rng = np.random.default_rng(0)
  drawn = [connected_sets.random_size(30, rng) for _ in range(2000)]
  assert min(drawn) == 1 and max(drawn) == 30
  assert 3 <= np.median(drawn) <= 8  # The median is about the root of 30.


@pytest.mark.parametrize('size, expected', [(1, [2]), (3, [2, 3, 4]),
                                            (9, [2, 3, 4])])
def test_grows_along_edges_until_it_is_large_enough(size, expected):
  edges = {2: [(3, 1.)], 3: [(2, 1.), (4, 1.)], 4: [(3, 1.)]}
  found = connected_sets.grown(2, size, edges.__getitem__, random.Random(0))
  assert sorted(found.tolist()) == expected


def test_light_edges_are_left_for_later():
  edges = {0: [(1, .05), (2, 1.)], 1: [(0, .05)], 2: [(0, 1.)]}
  ends = [
      connected_sets.grown(0, 2, edges.__getitem__,
                           random.Random(seed)).tolist() for seed in range(200)
  ]
  assert sum(1 in end for end in ends) < 40
