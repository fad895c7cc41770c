"""What C++ grows is what Python grows."""

from __future__ import annotations

import random

import hypothesis
from hypothesis import strategies as st
import numpy as np

from gdp_grappler.placers import growth
from gdp_grappler.placers import neighbourhood


@hypothesis.settings(max_examples=100, deadline=None)
@hypothesis.given(seed=st.integers(0, (1 << 62) - 1), count=st.integers(1, 30),
                  edges=st.integers(0, 90), size=st.integers(1, 35))
def test_the_same_set_as_the_naive_one(seed, count, edges, size):
  rng = np.random.default_rng(seed)
  ends = rng.integers(count, size=(edges, 2))
  ends = ends[np.argsort(ends[:, 0], kind='stable')]
  starts = np.searchsorted(ends[:, 0], np.arange(count + 1))
  eager = .2 + .8 * rng.random(edges)
  labels = rng.integers(2, size=count)
  start = int(rng.integers(count))

  def edges_of(vertex: int) -> list[neighbourhood.Edge]:
    return [(int(ends[e, 1]), float(eager[e]))
            for e in range(starts[vertex], starts[vertex + 1])
            if labels[ends[e, 1]] == labels[vertex]]

  expected = neighbourhood.grown(start, size, edges_of, random.Random(seed))
  found = growth.Growth(starts, ends[:, 1],
                        eager).grown(labels, start, size, seed)
  assert sorted(found.tolist()) == sorted(expected.tolist())
