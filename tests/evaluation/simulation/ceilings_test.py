"""Up to its ceiling a step is what it is; above, it is above."""

import dataclasses

import hypothesis
from hypothesis import strategies
import numpy as np
import pytest

from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from helpers import clusters
from helpers import graphs

_many = hypothesis.settings(max_examples=150, deadline=None, derandomize=True)


def _case(seed):
  """Random ops on CPUs, on GPUs, or on GPUs that share a unit; placements."""
  rng = np.random.default_rng(seed)
  graph = graphs.random_graph(seed, int(rng.integers(2, 120)))
  cluster = (presets.preset('2xP100'), clusters.make_cluster(2),
             _shared(presets.preset('2xP100')))[int(rng.integers(3))]
  seconds = rng.exponential(1e-3, (graph.num_ops, cluster.num_devices))
  simulator = simulator_lib.Simulator(cluster, clusters.FixedCosts(seconds))
  devices = rng.integers(0, 3, (8, graph.num_groups))[:, graph.groups]
  return graph, simulator, devices, rng


def _shared(cluster):
  """Both GPUs compute in turns."""
  devices = list(cluster.devices)
  devices[2] = dataclasses.replace(devices[2], compute=devices[1].compute)
  return dataclasses.replace(cluster, devices=tuple(devices))


@_many
@hypothesis.given(strategies.integers(0, 10_000),
                  strategies.sampled_from(['fifo', 'priorities', 'order']))
def test_prices_below_are_exact_and_others_are_above(seed, way):
  graph, simulator, devices, rng = _case(seed)
  priorities = None if way == 'fifo' else rng.random(graph.num_ops)

  def price(ceilings_s):
    if way == 'order':
      return simulator.price_in_order(graph, devices, priorities, ceilings_s)
    return simulator.price(graph, devices, priorities, ceilings_s)

  exact = price(np.inf)
  # The own step is still asked for; a hair less is not.
  ceilings_s = exact.seconds * rng.choice([.3, .9, 1 - 1e-6, 1, 1.5], 8)
  ceilings_s[:4] = 0, 5e-324, -1, np.inf
  found = price(ceilings_s)
  asked = exact.seconds <= ceilings_s
  if way == 'order':
    # What priorities alone cannot keep has no order to be asked for.
    asked &= simulator.price(graph, devices, priorities).seconds <= ceilings_s
  np.testing.assert_array_equal(found.seconds[asked], exact.seconds[asked])
  np.testing.assert_array_equal(found.peak_bytes[asked],
                                exact.peak_bytes[asked])
  assert (found.seconds[~asked] > ceilings_s[~asked]).all()
  assert not found.valid[~asked].any()
  assert (found.valid[asked] == exact.valid[asked]).all()
  # Nothing is left of a step that was broken off.
  np.testing.assert_array_equal(price(np.inf).seconds, exact.seconds)


def test_a_busy_stream_is_enough_to_know():
  """A hundred ops of a second each: known when the first is dispatched."""
  graph = graphs.make_graph(num_ops=100)
  cluster = presets.preset('2xP100')
  simulator = simulator_lib.Simulator(cluster,
                                      clusters.FixedCosts(np.ones((100, 1))))
  devices = np.ones((1, 100), int)
  assert simulator.price(graph, devices).seconds[0] >= 100
  found_s = simulator.price(graph, devices, None, 99.).seconds[0]
  assert found_s == pytest.approx(99., rel=1e-6) and found_s > 99


def test_ceilings_are_of_one_placement_each():
  graph = graphs.chain(3)
  simulator = simulator_lib.Simulator(clusters.make_cluster(),
                                      clusters.FixedCosts(1.))
  devices = np.ones((2, 3), int)
  for ceilings_s in np.ones(3), np.array([1, np.nan]), np.nan:
    with pytest.raises(ValueError, match='ceiling_s'):
      simulator.price(graph, devices, None, ceilings_s)
  assert not len(simulator.price(graph, devices[:0], None, np.ones(0)))


def test_a_step_that_takes_its_time_later_is_above_nothing():
  """The first op takes no time: 0 was said to be enough."""
  graph = graphs.make_graph([(0, 1, 8)])
  simulator = simulator_lib.Simulator(
      presets.preset('2xP100'), clusters.FixedCosts(np.array([[0.], [1.]])))
  for ceiling_s in 0., 5e-324:
    found = simulator.price(graph, np.ones((1, 2), int), None, ceiling_s)
    assert found.seconds[0] > ceiling_s and not found.valid[0]
