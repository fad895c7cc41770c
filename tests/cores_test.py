"""Tests for cores."""

import os

from gdp_grappler import cores
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.simulation import simulator as simulator_lib


def test_that_it_was_kept_from_some_counts():
  allowed = os.sched_getaffinity(0)
  assert cores.own() == len(allowed)
  try:
    os.sched_setaffinity(0, {min(allowed)})
    assert cores.own() == 1
    # A simulator of a job with one core of many would start a thread for each.
    assert simulator_lib.Simulator(presets.preset('2xP100')).threads == 1
  finally:
    os.sched_setaffinity(0, allowed)


def test_others_have_the_rest(monkeypatch):
  monkeypatch.setattr(cores, '_share', cores._share)
  allowed = len(os.sched_getaffinity(0))
  cores.keep_to(allowed + 1)
  assert cores.own() == allowed
  cores.keep_to(1)
  assert cores.own() == 1
