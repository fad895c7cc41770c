"""Tests of sizes of runs."""

import placer_model  # isort: skip  # before TensorFlow  # noqa: F401

import pytest

from gdp_grappler import errors
from placer_model.pretraining.placements import config as config_lib


def test_the_rate_rises_and_falls():
  config = config_lib.PlacementConfig(rounds=10, problems=1, steps=10, warm=4)
  rates = [config.rate(step) for step in range(100)]
  assert rates[0] == pytest.approx(.25, rel=.01)
  assert max(rates) == rates[3]
  assert rates[-1] == pytest.approx(.03, rel=.05)


def test_configs_have_names():
  assert config_lib.named('small').rounds == 8
  with pytest.raises(errors.GdpError, match='full'):
    config_lib.named('ful')
