"""A step in order is that with the edges that make devices keep the order."""

import hypothesis
from hypothesis import strategies
import numpy as np
import pytest

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation import recording_evaluator
from gdp_grappler.evaluation import robust_evaluator
from gdp_grappler.evaluation.ordering import edge_pricer
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from helpers import clusters
from helpers import graphs

_CLUSTER = presets.preset('2xP100')


class _Costs(clusters.FixedCosts):
  """No two ops take equally long, so that nothing happens at one moment."""

  def op_seconds(self, graph, cluster):
    rng = np.random.default_rng(graph.num_ops)
    return rng.uniform(1e-5, 1e-3, (graph.num_ops, cluster.num_devices))


def _rising(may, rank, start_s, devices):
  """Those of an order that each device starts in the order of ranks."""
  result, last = may.copy(), np.full(_CLUSTER.num_devices, -1)
  for op in np.argsort(start_s, kind='stable'):
    result[op] &= rank[op] > last[devices[op]]
    if result[op]:
      last[devices[op]] = rank[op]
  return result


def _edges_by_hand(devices, schedule, may):
  """Each op after the one that its asynchronous device starts before it."""
  edges = []
  for device, info in enumerate(_CLUSTER.devices):
    ops = np.flatnonzero((devices == device) & may)
    if info.asynchronous:
      ops = ops[np.argsort(schedule.start_s[ops], kind='stable')]
      edges += zip(ops[:-1].tolist(), ops[1:].tolist())
  return edge_pricer.as_edges(edges)


@hypothesis.settings(max_examples=100, deadline=None, derandomize=True)
@hypothesis.given(seed=strategies.integers(0, 10_000))
def test_it_is_the_step_of_the_graph_with_these_edges(seed):
  rng = np.random.default_rng(seed)
  graph = graphs.random_graph(seed, 60)
  simulator = simulator_lib.Simulator(_CLUSTER, _Costs(1.))
  devices = rng.integers(0, 3, graph.num_groups)[graph.groups]
  rank = np.argsort(graph.topological_order)
  priorities = rng.normal(-rank, 5)
  schedule = simulator.schedule(
      graph, placement_lib.Placement(devices, _CLUSTER, priorities))
  # Edges against the topological order would change it, and with it who goes
  # first at one moment.
  may = _rising(simulator.orderable(graph), rank, schedule.start_s, devices)
  simulator.orderable = lambda _: may
  found = simulator.price_in_order(graph, devices[None], priorities)
  same = edge_pricer.with_edges(graph, _edges_by_hand(devices, schedule, may))
  same.__dict__['topological_order'] = graph.topological_order
  expected = simulator.price(same, devices[None])
  np.testing.assert_array_equal(found.seconds, expected.seconds)
  np.testing.assert_array_equal(found.peak_bytes, expected.peak_bytes)


def test_what_runs_ahead_stands_in_the_way_of_copies():
  """Priorities promise what edges alone do not keep."""
  graph = graphs.random_graph(3, 200)
  simulator = simulator_lib.Simulator(_CLUSTER, _Costs(1.))
  rng = np.random.default_rng(0)
  devices = rng.integers(1, 3, (20, graph.num_groups))[:, graph.groups]
  priorities = rng.random(graph.num_ops)
  promised = simulator.price(graph, devices, priorities).seconds
  kept = simulator.price_in_order(graph, devices, priorities).seconds
  assert kept.mean() > promised.mean()


def test_what_takes_too_long_anyway_is_not_asked_for():
  graph = graphs.random_graph(5, 80)
  simulator = simulator_lib.Simulator(_CLUSTER, _Costs(1.))
  rng = np.random.default_rng(0)
  devices = rng.integers(0, 3, (10, graph.num_groups))[:, graph.groups]
  priorities = rng.random((10, graph.num_ops))
  promised = simulator.price(graph, devices, priorities).seconds
  kept = simulator.price_in_order(graph, devices, priorities)
  ceiling_s = float(np.median(promised))
  found = simulator.price_in_order(graph, devices, priorities, ceiling_s)
  asked = (promised <= ceiling_s) & (kept.seconds <= ceiling_s)
  assert asked.any() and not asked.all()
  np.testing.assert_array_equal(found.seconds[asked], kept.seconds[asked])
  np.testing.assert_array_equal(found.peak_bytes[asked], kept.peak_bytes[asked])
  assert (found.seconds[~asked] > ceiling_s).all()


def test_without_asynchronous_devices_priorities_are_obeyed():
  cluster = clusters.make_cluster(2)
  graph = graphs.random_graph(1, 50)
  simulator = simulator_lib.Simulator(cluster, _Costs(1.))
  rng = np.random.default_rng(0)
  devices = rng.integers(0, 3, (5, graph.num_groups))[:, graph.groups]
  priorities = rng.random(graph.num_ops)
  np.testing.assert_array_equal(
      simulator.price_in_order(graph, devices, priorities).seconds,
      simulator.price(graph, devices, priorities).seconds)


def test_one_that_breaks_a_rule_takes_infinitely_long():
  graph = graphs.random_graph(2, 20)
  simulator = simulator_lib.Simulator(_CLUSTER, _Costs(1.))
  devices = np.full((1, graph.num_ops), 9)
  assert np.isinf(
      simulator.price_in_order(graph, devices,
                               np.zeros(graph.num_ops)).seconds[0])
  with pytest.raises(ValueError, match='priorities'):
    simulator.price_in_order(graph, devices, np.zeros(3))


def test_it_is_no_step_for_those_who_record():
  graph = graphs.random_graph(2, 20)
  watched = recording_evaluator.Recorder(
      simulator_lib.Simulator(_CLUSTER, _Costs(1.)))
  devices = np.ones((3, graph.num_ops), np.int32)
  watched.price_in_order(graph, devices, np.zeros(graph.num_ops))
  assert watched.evaluations == 3 and not watched.curve


def test_luck_makes_no_step_in_order_shorter():
  graph = graphs.random_graph(7, 80)
  simulator = simulator_lib.Simulator(_CLUSTER, _Costs(1.))
  rng = np.random.default_rng(0)
  devices = rng.integers(0, 3, (10, graph.num_groups))[:, graph.groups]
  priorities = rng.random(graph.num_ops)
  plain = simulator.price_in_order(graph, devices, priorities).seconds
  found = robust_evaluator.Robust(simulator).price_in_order(
      graph, devices, priorities)
  assert (found.seconds >= plain).all() and (found.seconds > plain).any()
