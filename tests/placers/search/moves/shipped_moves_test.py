"""Predictions of the shipped network on graphs that it has not learned."""

import numpy as np
import pytest

from gdp_grappler.cluster import presets
from gdp_grappler.graph import graph_def_io
from gdp_grappler.placers import step as step_lib
from gdp_grappler.placers.search.moves import shipped_moves
from gdp_grappler.workloads import registry
from placer_model.pretraining import quality
from placer_model.pretraining import searches

_PRICED = 1500


@pytest.mark.parametrize('workload, cluster, auc', [
    ('rnnlm-2@tiny', '2xP100', .75),
    ('transformer-xl-4@tiny', '4xP100', .85),
])
def test_it_tells_moves_that_gain_on_families_it_has_never_seen(
    workload, cluster, auc):
  """An AUC of .5 is chance."""
  graph = graph_def_io.read(registry.source(workload))
  step = step_lib.Step(graph, presets.preset(cluster))
  log = searches.of_step(step, _PRICED, seed=3)
  found = quality.of_network(shipped_moves.network(), log)
  # Most moves do not gain. Otherwise the test would be too easy.
  assert found.base_rate < .2
  assert found.auc > auc


def test_its_numbers_are_small_enough_to_ship():
  network = shipped_moves.network()
  assert network.hidden_weights.nbytes < 1 << 20
  assert np.abs(network.weights).max() < 100
