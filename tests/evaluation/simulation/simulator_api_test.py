"""What the simulator says of bad placements, bad input and concurrent use."""

import concurrent.futures
import gc
import math
import weakref

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.simulation import simulator
from helpers import clusters
from helpers import graphs


def _simulator(cluster=None, seconds=1.0, threads=None):
  return simulator.Simulator(cluster or clusters.make_cluster(),
                             clusters.FixedCosts(seconds), threads)


def _kinds(evaluation):
  return [violation.kind for violation in evaluation.violations]


class TestViolations:

  def test_torn_group(self):
    evaluation = _evaluate(graphs.chain(2, groups=[0, 0]), [1, 2])
    assert evaluation.step_time_s == math.inf
    assert _kinds(evaluation) == ['colocation']

  def test_device_without_a_kernel(self):
    graph = graphs.chain(2, allowed_types=[[True, True], [True, False]])
    evaluation = _evaluate(graph, [1, 1])
    assert evaluation.step_time_s == math.inf
    assert _kinds(evaluation) == ['device']
    assert evaluation.peak_bytes == (0, 0, 0)

  def test_pinned_op(self):
    evaluation = _evaluate(graphs.chain(2, pins=['', 'GPU:0']), [1, 2])
    assert _kinds(evaluation) == ['device']

  @pytest.mark.parametrize('devices', [[1], [1, 1, 1], [0, 3], [0, -1]])
  def test_wrong_shape_or_number(self, devices):
    evaluation = _evaluate(graphs.chain(2), devices)
    assert evaluation.step_time_s == math.inf
    assert _kinds(evaluation) == ['shape']

  def test_memory_names_devices_and_missing_bytes(self):
    cluster = clusters.make_cluster(memory=['c', 'g', 'g'], memory_bytes=150)
    evaluation = _simulator(cluster).evaluate(
        graphs.chain(2), placement_lib.Placement([1, 2], cluster))
    assert evaluation.step_time_s == 4
    assert not evaluation.valid
    violation, = evaluation.violations
    assert violation.kind == 'memory'
    assert violation.message == (
        'GPU:0 + GPU:1 needs 200 B at its peak, and a plan may use 150 B of it')

  def test_memory_that_just_suffices(self):
    cluster = clusters.make_cluster(memory=['c', 'g', 'g'], memory_bytes=200)
    assert _simulator(cluster).evaluate(
        graphs.chain(2), placement_lib.Placement([1, 2], cluster)).valid

  @pytest.mark.parametrize('seed', range(50))
  def test_same_verdict_as_the_placement(self, seed):
    rng = np.random.default_rng(seed)
    graph = graphs.random_graph(seed, 6)
    graph = graph.replace(
        allowed_types=np.stack([np.ones(6), rng.random(6) < 0.8], axis=1),
        pins=rng.choice(['', '', '', 'CPU:0'], 6))
    cluster = clusters.make_cluster()
    devices = rng.integers(0, 3, (50, 6))
    devices[25:] = devices[25:][:, graph.groups]
    priced = _simulator(cluster)
    for row, step_time_s in zip(devices, priced.price(graph, devices).seconds):
      placement = placement_lib.Placement(row, cluster)
      expected = placement.violations(graph)
      assert priced.evaluate(graph, placement).violations == expected
      assert math.isinf(step_time_s) == bool(expected)

  def test_graph_that_the_cluster_cannot_hold(self):
    graph = graphs.chain(2, pins=['', 'GPU:7'], user_pins=[False, True])
    with pytest.raises(errors.InfeasiblePlacementError, match='GPU:7'):
      _evaluate(graph, [0, 0])


class TestInput:

  @pytest.mark.parametrize('dtype', ['int8', 'uint8', 'int64', 'uint64'])
  def test_integers_of_any_kind(self, dtype):
    devices = np.array([[0, 1], [1, 1]], dtype)
    prices = _simulator().price(graphs.chain(2), devices)
    assert prices.seconds.tolist() == [4, 2]

  def test_devices_in_any_layout(self):
    devices = np.array([[0, 1], [1, 1], [1, 2]]).T[::-1].T
    prices = _simulator().price(graphs.chain(2), devices)
    assert prices.seconds.tolist() == [4, 2, 4]

  def test_schedule_of_a_broken_placement(self):
    cluster = clusters.make_cluster()
    with pytest.raises(ValueError, match='must share a device'):
      _simulator(cluster).schedule(graphs.chain(2, groups=[0, 0]),
                                   placement_lib.Placement([0, 1], cluster))

  def test_schedule_of_another_graphs_placement(self):
    cluster = clusters.make_cluster()
    with pytest.raises(ValueError, match=r'\[2\] is needed'):
      _simulator(cluster).schedule(graphs.chain(2),
                                   placement_lib.Placement([0], cluster))

  @pytest.mark.parametrize('seconds', [-1.0, math.nan, math.inf])
  def test_impossible_costs(self, seconds):
    with pytest.raises(ValueError, match='"op1" on CPU:0'):
      _simulator(seconds=[1.0, seconds]).price(graphs.chain(2),
                                               np.zeros((1, 2), int))

  def test_priorities_of_one_placement(self):
    cluster = clusters.make_cluster()
    placement = placement_lib.Placement([0, 0], cluster, [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r'priorities has shape \[3\]'):
      _simulator(cluster).schedule(graphs.chain(2), placement)
    with pytest.raises(ValueError, match=r'priorities has shape \[3\]'):
      _simulator(cluster).evaluate(graphs.chain(2), placement)

  @pytest.mark.parametrize('priorities', [[0, 3, 2, 1], [[0, 3, 2, 1]] * 2,
                                          np.float32([0, 3, 2, 1])])
  def test_priorities_for_all_alike_and_of_any_kind(self, priorities):
    # 3 takes 9 s and is waited for by nobody; 1 goes to the CPU's 2.
    graph = graphs.make_graph([(1, 2)], 4)
    devices = [[1, 1, 0, 1], [1, 1, 2, 1]]
    priced = _simulator(seconds=[1.0, 1.0, 20.0, 9.0])
    ordered = priced.price(graph, devices, priorities)
    assert ordered.seconds.tolist() == [22, 22]
    assert priced.price(graph, devices).seconds.tolist() == [23, 23]

  def test_evaluate_obeys_the_priorities_of_a_placement(self):
    cluster = clusters.make_cluster()
    graph, costs = graphs.make_graph([(1, 2)], 3), [1.0, 1.0, 20.0]
    for priorities, expected in ((None, 23), ([0.0, 1.0, 0.0], 22)):
      assert _simulator(cluster, costs).evaluate(
          graph, placement_lib.Placement([1, 1, 0], cluster,
                                         priorities)).step_time_s == expected

  def test_impossible_workspace(self):
    costs = clusters.FixedCosts(1.0, [3, -1])
    with pytest.raises(ValueError, match='-1 bytes of workspace for "op1"'):
      simulator.Simulator(clusters.make_cluster(),
                          costs).price(graphs.chain(2), np.zeros((1, 2), int))

  def test_no_threads(self):
    with pytest.raises(ValueError, match='threads is 0'):
      simulator.Simulator(clusters.make_cluster(), threads=0)


class TestConcurrency:

  def test_threads_do_not_change_the_result(self):
    graph, cluster, devices = _some_placements()
    alone = simulator.Simulator(cluster, threads=1).price(graph, devices)
    many = simulator.Simulator(cluster, threads=7).price(graph, devices)
    np.testing.assert_array_equal(alone.seconds, many.seconds)
    np.testing.assert_array_equal(alone.peak_bytes, many.peak_bytes)
    assert len(set(alone.seconds.tolist())) > 10

  def test_calls_from_several_python_threads(self):
    graph, cluster, devices = _some_placements()
    shared = simulator.Simulator(cluster, threads=2)
    expected = simulator.Simulator(cluster).price(graph, devices).seconds
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
      for result in pool.map(lambda _: shared.price(graph, devices).seconds,
                             range(32)):
        np.testing.assert_array_equal(result, expected)

  def test_one_simulation_leaves_nothing_to_the_next(self):
    graph, cluster, devices = _some_placements()
    shared = simulator.Simulator(cluster, threads=1)
    first = shared.price(graph, devices).seconds
    again = shared.price(graph, devices[::-1]).seconds[::-1]
    np.testing.assert_array_equal(first, again)


class TestCache:

  def test_graph_is_priced_once(self):
    calls = []

    class Counting(clusters.FixedCosts):

      def op_seconds(self, graph, cluster):
        calls.append(graph)
        return super().op_seconds(graph, cluster)

    priced = simulator.Simulator(clusters.make_cluster(), Counting(1.0))
    graph, other = graphs.chain(2), graphs.chain(2)
    for each in (graph, graph, other, graph):
      priced.price(each, np.zeros((1, 2), int))
    assert calls == [graph, other]

  def test_graph_is_not_kept_alive(self):
    priced = _simulator()
    graph = graphs.chain(2)
    priced.price(graph, np.zeros((1, 2), int))
    watched = weakref.ref(graph)
    del graph
    gc.collect()
    assert watched() is None


def _evaluate(graph, devices):
  cluster = clusters.make_cluster()
  return _simulator(cluster).evaluate(graph,
                                      placement_lib.Placement(devices, cluster))


def _some_placements():
  graph, cluster = graphs.random_graph(3, 500), presets.preset('4xP100')
  rng = np.random.default_rng(0)
  devices = rng.integers(0, 5, (40, graph.num_groups))[:, graph.groups]
  return graph, cluster, devices
