"""Tests of placer_model.hdp.registry."""

import pytest

from gdp_grappler.placers import registry as heuristics
from placer_model.benchmark import placer_sets
from placer_model.hdp import registry


@pytest.mark.parametrize('name', sorted(registry.PLACERS))
def test_every_planner_is_made_by_the_bench_too(name):
  assert isinstance(placer_sets.create(name), registry.PLACERS[name])
  assert name not in heuristics.names()
