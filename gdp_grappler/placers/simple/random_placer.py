"""A random device for every group."""

from __future__ import annotations

import numpy as np

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import placer as placer_lib


class RandomPlacer:
  """Puts each group on one of its allowed devices, all equally likely."""

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`."""
    generator = np.random.default_rng(problem.seed)
    draws = generator.random(problem.allowed.shape)
    devices = np.where(problem.allowed, draws, -1.).argmax(axis=1)
    return placement_lib.from_groups(problem.graph, devices, problem.cluster)
