"""Units become ops, prices become trials."""

import dataclasses

import numpy as np

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.simulation import simulator
from helpers import clusters
from helpers import graphs
from helpers import stopwatches
from helpers import toy_training
from placer_model.training import environment as environment_lib


def test_price_of_a_chain_by_hand():
  environment = toy_training.chain_environment(4)
  trials = environment.price(
      np.array([[1, 1, 1, 1], [1, 1, 2, 2], [1, 2, 1, 2], [0, 0, 0, 0]]))
  # One GPU: 4 ops of a second. Halves: 2 s and a transfer. Alternating: 2 s
  # and three transfers. CPU: 4 ops of 4 s.
  np.testing.assert_allclose(trials.step_time_s, [4.0, 2.5, 3.5, 16.0])
  assert trials.valid.all()
  assert trials.best() == 1
  assert environment.evaluations == 4


def test_too_much_memory_is_invalid():
  environment = toy_training.chain_environment(4, memory_bytes=250,
                                               param_bytes=100)
  trials = environment.price(np.array([[1, 1, 1, 2], [1, 1, 2, 2]]))
  np.testing.assert_array_equal(trials.valid, [False, True])
  np.testing.assert_allclose(trials.step_time_s, [np.inf, 2.5])


def test_no_valid_trial_has_no_best():
  environment = toy_training.chain_environment(4, memory_bytes=50,
                                               param_bytes=100)
  assert environment.price(np.ones((2, 4), int)).best() is None


def _torn_environment():
  """Six ops in two units."""
  whole = toy_training.chain_environment(6)
  features = dataclasses.replace(
      whole.features, op_types=('MatMul',) * 2,
      allowed=np.array([[True, True, True], [True, True, False]]))
  return environment_lib.Environment(whole.graph, whole.cluster,
                                     toy_training.LoadAndCut(whole.cluster),
                                     np.array([0, 0, 0, 0, 1, 1]), features)


def test_ops_go_where_their_unit_goes():
  environment = _torn_environment()
  np.testing.assert_array_equal(
      environment.placement(np.array([2, 1])).devices, [2, 2, 2, 2, 1, 1])
  np.testing.assert_allclose(
      environment.price(np.array([[2, 1]])).step_time_s, [4.5])


def test_decisions_nearest_to_a_placement():
  environment = _torn_environment()
  placement = placement_lib.Placement([0, 2, 2, 0, 2, 2], environment.cluster)
  # The tie goes to the first device; unit 1 may not be on device 2.
  np.testing.assert_array_equal(environment.decisions(placement), [0, 0])


def test_measured_placements_are_run_once():
  graph, cluster = graphs.chain(3), clusters.make_cluster()
  stopwatch = stopwatches.Stopwatch(
      simulator.Simulator(cluster, clusters.FixedCosts(4 / 3)),
      fails=lambda devices: '' if devices[0] else 'run')
  environment = environment_lib.Environment(
      graph, cluster, stopwatch, np.arange(3),
      toy_training.features_of(graph, cluster))
  for _ in range(2):
    trials = environment.price(np.array([[1, 1, 1], [0, 0, 0], [1, 1, 1]]))
    np.testing.assert_allclose(trials.step_time_s, [4.0, np.inf, 4.0])
    np.testing.assert_array_equal(trials.valid, [True, False, True])
  assert stopwatch.runs == 2
  assert environment.evaluations == 2
