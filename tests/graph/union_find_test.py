"""Tests of gdp_grappler.graph.union_find."""

import numpy as np
import pytest

from gdp_grappler.graph import union_find


@pytest.mark.parametrize('seed', range(3))
def test_union_find_against_repainting(seed):
  rng = np.random.default_rng(seed)
  sets, colors = union_find.UnionFind(40), np.arange(40)
  for a, b in rng.integers(0, 40, (25, 2)):
    sets.join(a, b)
    colors[colors == colors[b]] = colors[a]
  numbers = sets.numbers()
  same = colors[:, None] == colors[None]
  assert ((numbers[:, None] == numbers[None]) == same).all()
  assert list(dict.fromkeys(numbers.tolist())) == list(range(numbers.max() + 1))


def test_join_all_of_none():
  sets = union_find.UnionFind(2)
  sets.join_all([])
  assert sets.numbers().tolist() == [0, 1]
