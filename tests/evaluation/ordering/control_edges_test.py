"""Control edges: few, without circles, and as good as they say."""

import dataclasses
import itertools

import hypothesis
from hypothesis import strategies
import numpy as np
import pytest

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.ordering import control_edges
from gdp_grappler.evaluation.ordering import critical_path_order
from gdp_grappler.evaluation.ordering import depth_first
from gdp_grappler.evaluation.ordering import edge_pricer
from gdp_grappler.evaluation.ordering import layer_step_order
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from helpers import clusters
from helpers import graphs
from helpers import orders
from helpers import unrolled

_CLUSTER = presets.preset('4xP100')
_FREE = control_edges.OrderConfig(edge_s=0.)


def _random_case(seed, num_ops, window):
  graph = graphs.random_graph(seed, num_ops, window=window)
  rng = np.random.default_rng(seed)
  return graph, placement_lib.from_groups(
      graph, rng.integers(0, _CLUSTER.num_devices, graph.num_groups), _CLUSTER)


def _simulated(graph, placement, edges, simulator):
  """Step with these edges; a circle among them is an error."""
  return simulator.evaluate(edge_pricer.with_edges(graph, edges),
                            dataclasses.replace(placement,
                                                priorities=None)).step_time_s


def test_one_edge_does_what_priorities_do():
  graph, placement, costs = orders.late_chain(4)
  simulator = simulator_lib.Simulator(placement.cluster, costs)
  order = control_edges.control_edges(graph, placement, simulator, _FREE)
  assert (order.fifo_s, order.ordered_s, order.with_edges_s) == (10., 6., 6.)
  # The sender is op 4, which FIFO starts last: all others have to wait.
  assert sorted(order.control_edges[:, 1].tolist()) == [0, 1, 2, 3]
  # All wait for the sender, or for one that waits.
  assert set(order.control_edges[:, 0].tolist()) <= {4, 0, 1, 2}


def test_contention_is_in_every_price():
  # Once, only the step without edges knew of it, and orders seemed to pay.
  graph, placement, costs = orders.late_chain(4)
  costs = dataclasses.replace(costs, seconds=[1.5, 1., 1., 1., 1., 4.],
                              buses=[0, 0, 0], shares=.5)
  simulator = simulator_lib.Simulator(placement.cluster, costs)
  order = control_edges.control_edges(graph, placement, simulator, _FREE)
  assert order.fifo_s == simulator.evaluate(graph, placement).step_time_s
  assert order.with_edges_s == _simulated(graph, placement, order.control_edges,
                                          simulator)
  assert len(order.control_edges)


def _rivals(seconds):
  """Nobody waits for op0; op1 sends to op2 on another device."""
  placement = placement_lib.Placement([1, 1, 2], clusters.make_cluster())
  return graphs.make_graph([(1, 2)], 3), placement, simulator_lib.Simulator(
      placement.cluster, clusters.FixedCosts(seconds))


def test_a_single_rival_needs_a_single_edge():
  order = control_edges.control_edges(*_rivals([5., 1., 5.]), _FREE)
  assert order.control_edges.tolist() == [[1, 0]]
  assert (order.fifo_s, order.ordered_s, order.with_edges_s) == (12., 7., 7.)


def test_edges_have_their_price():

  # FIFO: 6, 7, 8, 12.5. Ordered: op1 until 1, op0 until 7.
  def priced(edge_s):
    return control_edges.control_edges(*_rivals([6., 1., 4.5]),
                                       control_edges.OrderConfig(edge_s=edge_s))

  assert priced(0.5).with_edges_s == 7.5
  dear = priced(6.)
  assert len(dear.control_edges) == 0
  assert dear.with_edges_s == dear.fifo_s == 12.5


def test_no_edges_below_the_least_gain():
  for min_gain, edges in ((0.41, 1), (0.42, 0)):  # 12 s become 7 s.
    order = control_edges.control_edges(
        *_rivals([5., 1., 5.]),
        control_edges.OrderConfig(min_gain=min_gain, edge_s=0.))
    assert len(order.control_edges) == edges


def test_nothing_to_gain_needs_no_edges():
  cluster = clusters.make_cluster()
  for graph, devices in ((graphs.chain(6), [1, 2, 1, 2, 0,
                                            1]), (graphs.fan_out(5), [1] * 6)):
    order = control_edges.control_edges(
        graph, placement_lib.Placement(devices, cluster),
        simulator_lib.Simulator(cluster))
    assert order.control_edges.shape == (0, 2)
    assert order.with_edges_s == order.fifo_s


@hypothesis.settings(max_examples=25, deadline=None, derandomize=True)
@hypothesis.given(seed=strategies.integers(0, 10_000),
                  num_ops=strategies.integers(20, 300),
                  window=strategies.sampled_from([5, 20, 100]))
def test_properties_of_all_edges(seed, num_ops, window):
  graph, placement = _random_case(seed, num_ops, window)
  simulator = simulator_lib.Simulator(_CLUSTER)
  order = control_edges.control_edges(graph, placement, simulator)
  edges = order.control_edges
  # None twice; along a tensor's way, one puts its target behind what is sent.
  assert len(np.unique(edges, axis=0)) == len(edges)
  there = graph.edges[graph.edge_tensors < 0].tolist()
  assert not set(map(tuple, edges.tolist())) & set(map(tuple, there))
  if not len(edges):
    assert order.with_edges_s == order.fifo_s
    return
  assert order.with_edges_s < order.fifo_s * 0.98
  # No circle, and no more than was promised.
  assert order.with_edges_s >= _simulated(graph, placement, edges, simulator)


def test_most_of_the_gain_is_reached_with_few_edges():
  gains, edges, ops = [], 0, 0
  for seed in range(15):
    graph, placement = _random_case(seed, 400, 30)
    order = control_edges.control_edges(graph, placement,
                                        simulator_lib.Simulator(_CLUSTER),
                                        _FREE)
    if order.ordered_s < 0.97 * order.fifo_s:
      gains.append((order.fifo_s - order.with_edges_s) /
                   (order.fifo_s - order.ordered_s))
      edges, ops = edges + len(order.control_edges), ops + graph.num_ops
  assert len(gains) >= 5
  assert np.median(gains) >= 0.9
  assert edges < ops / 20


def test_every_edge_that_is_left_matters():
  """Leaving out any of few edges costs more than the gain to be kept.

  So it is where ops wait; streams have anomalies.
  """
  graph, devices = orders.unrolled_lstm(4, 8)
  cluster = clusters.synchronous(_CLUSTER)
  placement = placement_lib.Placement(devices, cluster)
  simulator = simulator_lib.Simulator(cluster)
  order = control_edges.control_edges(graph, placement, simulator, _FREE)
  kept_s = order.fifo_s - 0.9 * (order.fifo_s - order.ordered_s)
  assert order.with_edges_s <= kept_s
  assert 1 <= len(order.control_edges) <= graph.num_ops / 4
  for i in range(len(order.control_edges)):
    fewer = np.delete(order.control_edges, i, axis=0)
    assert _simulated(graph, placement, fewer, simulator) > kept_s


def test_first_in_first_out_is_not_the_order_of_equal_priorities():
  graph, devices = orders.unrolled_lstm(4, 8)
  placement = placement_lib.Placement(devices, _CLUSTER)
  simulator = simulator_lib.Simulator(_CLUSTER)
  equal = dataclasses.replace(placement, priorities=np.zeros(graph.num_ops))
  order = control_edges.control_edges(graph, placement, simulator, _FREE)
  fifo, alike = (
      simulator.evaluate(graph, p).step_time_s for p in (placement, equal))
  assert order.fifo_s == fifo != alike


def test_devices_that_run_several_ops_at_a_time_keep_doing_so():
  cluster = clusters.make_cluster()
  cluster = dataclasses.replace(
      cluster,
      devices=tuple(dataclasses.replace(d, slots=2) for d in cluster.devices))
  # Two long ops and two senders, ready at once; the senders go first, and
  # side by side.
  graph = graphs.make_graph([(2, 4), (3, 4)], 5)
  placement = placement_lib.Placement([1, 1, 1, 1, 2], cluster)
  order = control_edges.control_edges(
      graph, placement,
      simulator_lib.Simulator(cluster, clusters.FixedCosts([6., 6., 1., 1.,
                                                            6.])), _FREE)
  assert (order.fifo_s, order.with_edges_s) == (14., 8.)
  first, then = order.control_edges.T
  assert set(first.tolist()) <= {2, 3} and set(then.tolist()) <= {0, 1}


def test_a_placement_that_cannot_run_has_no_order():
  graph = graphs.chain(2, groups=[0, 0])
  cluster = clusters.make_cluster()
  order = control_edges.control_edges(graph,
                                      placement_lib.Placement([1, 2], cluster),
                                      simulator_lib.Simulator(cluster))
  assert not len(order.control_edges) and np.isinf(order.fifo_s)


def test_edges_do_not_make_a_memory_overflow():
  refused = 0
  for seed in range(12):
    graph, placement = _random_case(seed, 150, 20)
    simulator = simulator_lib.Simulator(_CLUSTER)
    if not len(
        control_edges.control_edges(graph, placement, simulator,
                                    _FREE).control_edges):
      continue
    peaks = simulator.evaluate(graph, placement).peak_bytes
    tight = dataclasses.replace(
        _CLUSTER, devices=tuple(
            dataclasses.replace(device, memory_bytes=max(1, peaks[pool]),
                                memory_margin=0.)
            for device, pool in zip(_CLUSTER.devices, _CLUSTER.memory_pools)))
    simulator = simulator_lib.Simulator(tight)
    placement = dataclasses.replace(placement, cluster=tight)
    order = control_edges.control_edges(graph, placement, simulator, _FREE)
    refused += not len(order.control_edges)
    assert simulator.price(edge_pricer.with_edges(graph, order.control_edges),
                           placement.devices[None]).valid[0]
  assert refused


def test_wrong_arguments():
  graph, placement, _ = orders.late_chain(2)
  with pytest.raises(ValueError, match='simulator is for "4xP100"'):
    control_edges.control_edges(graph, placement,
                                simulator_lib.Simulator(_CLUSTER))
  with pytest.raises(ValueError, match='not a number'):
    control_edges.control_edges(
        graph, dataclasses.replace(placement, priorities=[np.nan] * 4),
        simulator_lib.Simulator(placement.cluster))


def _pricer_until(looks):
  """An `EdgePricer` for whom the time is over after so many looks at it."""
  stock, ticks = edge_pricer.EdgePricer, itertools.count()

  def make(graph, placement, simulator, edge_s, max_simulated_ops, max_s):
    assert max_s == 10.
    return stock(graph, placement, simulator, edge_s, max_simulated_ops, looks,
                 lambda: next(ticks))

  return make


def test_what_was_found_when_the_time_is_over_counts(monkeypatch):
  graph, placement, costs = orders.late_chain(40)
  simulator = simulator_lib.Simulator(placement.cluster, costs)
  steps = []
  for looks in range(9):
    with monkeypatch.context() as patch:
      patch.setattr(edge_pricer, 'EdgePricer', _pricer_until(looks))
      found = control_edges.control_edges(graph, placement, simulator,
                                          control_edges.OrderConfig(max_s=10.))
    steps.append(found.with_edges_s)
    assert found.with_edges_s <= found.fifo_s
  assert steps[0] == found.fifo_s and steps[-1] < found.fifo_s


def test_a_measurer_gets_the_edges_alone():
  graph, placement, costs = orders.late_chain(4)
  simulator = simulator_lib.Simulator(placement.cluster, costs)
  ordered = critical_path_order.with_critical_path_order(
      graph, placement, simulator)
  np.testing.assert_array_equal(
      control_edges.chooser(simulator)(graph, ordered),
      control_edges.control_edges(graph, ordered, simulator).control_edges)


def _running_ahead():
  """Two GPUs, each 1/8 s per dispatch, which hear of a copy after 1/2 s."""
  cluster = clusters.make_cluster()
  return dataclasses.replace(
      cluster, devices=tuple(
          dataclasses.
          replace(d, launch='asynchronous', dispatch_s=.125, visit_s=.125,
                  copy_dispatch_s=.125, callback_s=.5) if d.type == 'GPU' else d
          for d in cluster.devices))


def test_a_throttle_lets_a_copy_start_before_what_was_handed_over():
  # Ops 0 to 7 follow each other on GPU:0; op 7 sends for 8 s to op 8 on GPU:1,
  # which has three ops of 4 s of its own. All of them have been handed over
  # when the copy is issued, so that it starts at 12.125 s; op 7 ends at 5 s.
  graph = graphs.make_graph([(i, i + 1) for i in range(7)] + [(7, 8, 700)], 12)
  placement = placement_lib.Placement([1] * 8 + [2] * 4, _running_ahead())
  simulator = simulator_lib.Simulator(
      placement.cluster, clusters.FixedCosts([.125] * 7 + [4.] * 5))
  order = control_edges.control_edges(graph, placement, simulator, _FREE)
  # With the last two of them held back by GPU:0, the copy starts at 6.125 s.
  assert order.control_edges.tolist() == [[5, 10], [5, 11]]
  assert (order.fifo_s, order.with_edges_s) == (24.75, 18.75)
  assert order.with_edges_s == _simulated(graph, placement, order.control_edges,
                                          simulator)


def test_one_part_of_a_batch_after_the_other_where_that_is_better():
  # Six parts go through GPU:0, GPU:1 and GPU:0 again; by rank, all of them
  # would have to be through GPU:0 before the first one comes back.
  parts = 6
  graph = graphs.make_graph([(stage * parts + k, stage * parts + parts + k, 100)
                             for stage in range(3)
                             for k in range(parts)], 4 * parts)
  placement = placement_lib.Placement([1] * parts + [2] * parts + [1] * parts
                                      + [2] * parts, _running_ahead())
  simulator = simulator_lib.Simulator(placement.cluster,
                                      clusters.FixedCosts(2.))
  order = control_edges.control_edges(graph, placement, simulator, _FREE)
  by_rank = critical_path_order.with_critical_path_order(
      graph, placement, simulator)
  assert order.ordered_s <= simulator.evaluate(graph, by_rank).step_time_s
  assert order.with_edges_s <= order.fifo_s


@hypothesis.settings(max_examples=25, deadline=None, derandomize=True)
@hypothesis.given(seed=strategies.integers(0, 10_000),
                  num_ops=strategies.integers(20, 150))
def test_a_step_with_free_edges_is_that_of_the_graph_with_them(seed, num_ops):
  graph, placement = _random_case(seed, num_ops, 20)
  simulator = simulator_lib.Simulator(_CLUSTER)
  order = control_edges.control_edges(
      graph, placement, simulator,
      control_edges.OrderConfig(min_gain=0., edge_s=0.))
  assert order.with_edges_s == _simulated(graph, placement, order.control_edges,
                                          simulator)
  assert order.with_edges_s <= order.fifo_s
  assert (order.priorities is None) == (not len(order.control_edges))


def test_evaluate_has_the_edges_in_every_evaluator():
  graph, placement, costs = orders.late_chain(4)
  simulator = simulator_lib.Simulator(placement.cluster, costs)
  assert control_edges.evaluate(graph, placement, simulator,
                                simulator).step_time_s == 6.
  asked = []

  class Stopwatch(simulator_lib.Simulator):
    simulated = False

    def evaluate(self, graph, placement):
      asked.append(placement.priorities)
      return super().evaluate(graph, placement)

  stopwatch = Stopwatch(placement.cluster, costs)
  assert control_edges.evaluate(graph, placement, stopwatch,
                                simulator).step_time_s == 6.
  assert asked[0] is not None


def test_an_order_that_a_placement_has_already_is_tried_once():
  graph = unrolled.make(3, 4).graph
  prices = simulator_lib.Simulator(presets.preset('2xP100'))
  devices = np.random.default_rng(0).integers(1, 3, graph.num_ops)
  without = placement_lib.Placement(devices, prices.cluster)
  usual = control_edges._orders(graph, without, prices)
  ranks = critical_path_order.upward_ranks(graph, devices, prices.cluster,
                                           prices.op_seconds(graph))
  np.testing.assert_array_equal(usual, [
      ranks,
      depth_first.priorities(graph),
      layer_step_order.priorities(graph, ranks)
  ])
  for order in usual:
    found = control_edges._orders(
        graph, dataclasses.replace(without, priorities=order), prices,
        only_wanted=False)
    assert len(found) == len(usual) == len(np.unique(found, axis=0))
    np.testing.assert_array_equal(found[0], order)


def test_two_orders_are_tried_without_time_steps():
  prices = simulator_lib.Simulator(presets.preset('2xP100'))
  placement = placement_lib.Placement(np.ones(4, int), prices.cluster)
  assert len(control_edges._orders(graphs.chain(4), placement, prices)) == 2
