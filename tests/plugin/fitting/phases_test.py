from gdp_grappler.plugin.fitting import phases
from gdp_grappler.plugin.fitting import ways


def test_every_way_has_a_phase_after_planning():
  assert {phases.of_way(way) for way in ways.FitWay} == phases.AFTER_PLANNING


def test_what_is_placed_leaves_the_loop():
  for way in ways.FitWay:
    placed = phases.of_way(way) is phases.Phase.ONE_BY_ONE
    assert placed == way.is_placed
