"""What the robust price adds to the simulated step, and what it leaves."""

import dataclasses
import gc
import math
import weakref

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import numpy as np
import pytest

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.evaluation import robust_evaluator
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.placers import annealing_placer
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.simple import single_device
from helpers import clusters
from helpers import graphs
from helpers import stopwatches

_many = settings(max_examples=50, deadline=None, derandomize=True)
_seeds = st.integers(0, 1 << 30)
_CPU, _GPU0, _GPU1 = range(3)
_NONE = robust_evaluator.RobustConfig(op_jitter=0., wire_jitter=0.,
                                      dispatch_jitter=0., poll_jitter=0.)


def _case(seed: int) -> tuple[op_graph.OpGraph, simulator_lib.Simulator]:
  """A graph on asynchronous GPUs, or on devices that wait for each op."""
  rng = np.random.default_rng(seed)
  graph = graphs.random_graph(seed, int(rng.integers(1, 60)), window=10)
  cluster = presets.preset('2xP100')
  if rng.integers(2):
    cluster = clusters.make_cluster(latency_s=1e-4, bandwidth_bytes_per_s=1e9)
  costs = clusters.FixedCosts(rng.exponential(1e-3, graph.num_ops))
  return graph, simulator_lib.Simulator(cluster, costs)


def _devices(graph: op_graph.OpGraph, count: int, seed: int) -> np.ndarray:
  """int [count, N], any of three devices for each group."""
  rng = np.random.default_rng(seed)
  return rng.integers(0, 3, (count, graph.num_groups))[:, graph.groups]


def _close_call(
    margin_s: float) -> tuple[op_graph.OpGraph, list[float], list[int]]:
  """A step of 4 s; of 6 s if op 2 is not the first to be there, by a margin.

  Op 1 takes 1 s where 2 and 3 are to run. Op 2 takes 1 s and has 2 s more to
  follow elsewhere, op 3 takes 2 s and leads nowhere.
  """
  graph = graphs.make_graph([(0, 2), (1, 3), (2, 4)])
  return (graph, [1 - margin_s, 1, 1, 2,
                  2], [_GPU0, _GPU1, _GPU1, _GPU1, _GPU0])


@pytest.mark.parametrize('margin_s, price_s', [(1e-6, 5), (.5, 4)])
def test_a_close_call_costs_half_of_what_is_lost_if_it_goes_wrong(
    margin_s, price_s):
  graph, seconds, devices = _close_call(margin_s)
  cluster = clusters.make_cluster(latency_s=1e-9)
  simulator = simulator_lib.Simulator(cluster, clusters.FixedCosts(seconds))
  price = robust_evaluator.Robust(simulator,
                                  robust_evaluator.RobustConfig(op_jitter=1e-3))
  assert simulator.price(graph, [devices]).seconds[0] == pytest.approx(4, 1e-3)
  assert price.price(graph,
                     [devices]).seconds[0] == pytest.approx(price_s, 1e-3)


def test_what_comes_one_after_the_other_takes_as_long_as_ever():
  graph = graphs.chain(6, tensor_bytes=10**9)
  cluster = clusters.make_cluster(bandwidth_bytes_per_s=1e9)
  simulator = simulator_lib.Simulator(cluster, clusters.FixedCosts(1.))
  seconds = robust_evaluator.Robust(simulator).price(
      graph, [[_GPU0, _GPU1, _GPU1, _CPU, _GPU0, _GPU1]]).seconds
  # 6 ops, and 4 transfers with a second of latency and one of bytes.
  assert seconds[0] == pytest.approx(14., 1e-9)


@_many
@given(_seeds)
def test_without_jitter_it_is_the_simulated_step(seed: int):
  graph, simulator = _case(seed)
  devices = _devices(graph, 4, seed)
  for priorities in (None, np.random.default_rng(seed).random(graph.num_ops)):
    plain = simulator.price(graph, devices, priorities)
    found = robust_evaluator.Robust(simulator,
                                    _NONE).price(graph, devices, priorities)
    for field in dataclasses.fields(plain):
      np.testing.assert_array_equal(getattr(found, field.name),
                                    getattr(plain, field.name))


@_many
@given(_seeds)
def test_never_less_than_the_simulated_step(seed: int):
  graph, simulator = _case(seed)
  devices = _devices(graph, 4, seed)
  plain = simulator.price(graph, devices)
  found = robust_evaluator.Robust(simulator).price(graph, devices)
  assert (found.seconds >= plain.seconds).all()
  np.testing.assert_array_equal(found.peak_bytes, plain.peak_bytes)
  np.testing.assert_array_equal(found.valid, plain.valid)


@_many
@given(_seeds)
def test_one_device_has_no_luck(seed: int):
  graph, simulator = _case(seed)
  devices = np.repeat(np.arange(3)[:, None], graph.num_ops, axis=1)
  np.testing.assert_array_equal(
      robust_evaluator.Robust(simulator).price(graph, devices).seconds,
      simulator.price(graph, devices).seconds)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(_seeds)
def test_what_is_found_by_it_is_no_slower_than_one_device(seed: int):
  graph, simulator = _case(seed)
  problem = placer_lib.Problem(graph, simulator.cluster,
                               robust_evaluator.Robust(simulator), seed % 100)
  found_s, single_s = (simulator.evaluate(graph,
                                          placer.place(problem)).step_time_s
                       for placer in (annealing_placer.AnnealingPlacer(60, ()),
                                      single_device.SingleDevicePlacer()))
  assert found_s <= single_s


@_many
@given(_seeds)
def test_prices_do_not_depend_on_their_company(seed: int):
  graph, simulator = _case(seed)
  devices = _devices(graph, 5, seed)
  together = robust_evaluator.Robust(simulator).price(graph, devices).seconds
  backwards = robust_evaluator.Robust(simulator).price(graph,
                                                       devices[::-1]).seconds
  np.testing.assert_array_equal(together, backwards[::-1])
  alone = robust_evaluator.Robust(simulator)
  assert [
      alone.evaluate(graph,
                     placement_lib.Placement(row,
                                             simulator.cluster)).step_time_s
      for row in devices
  ] == together.tolist()


def test_another_seed_has_other_draws():
  graph, cluster = graphs.random_graph(1, 60), clusters.make_cluster()
  simulator = simulator_lib.Simulator(cluster, clusters.FixedCosts(1.))
  devices = _devices(graph, 4, 0)
  prices = [
      robust_evaluator.Robust(simulator,
                              robust_evaluator.RobustConfig(
                                  pairs=2,
                                  seed=seed)).price(graph,
                                                    devices).seconds.tolist()
      for seed in (0, 0, 1)
  ]
  assert prices[0] == prices[1] != prices[2]


def test_what_fits_is_told_without_jitter():
  graph = graphs.make_graph([(0, 1, 1000)])
  simulator = simulator_lib.Simulator(clusters.make_cluster(memory_bytes=1000),
                                      clusters.FixedCosts(1.))
  assert robust_evaluator.Robust(simulator).price(graph,
                                                  [[_GPU0, _GPU0]]).valid[0]


def test_a_step_of_nothing_has_no_luck():
  graph = graphs.make_graph(num_ops=0)
  simulator = simulator_lib.Simulator(clusters.make_cluster())
  seconds = robust_evaluator.Robust(simulator).price(graph, np.zeros(
      (2, 0), int)).seconds
  assert seconds.tolist() == [0., 0.]


@_many
@given(_seeds, st.floats(.5, 2.))
def test_up_to_a_ceiling_prices_are_what_they_are(seed: int, share: float):
  graph, simulator = _case(seed)
  groups = np.random.default_rng(seed).integers(0, 3, (6, graph.num_groups))
  exact = robust_evaluator.Robust(simulator).price_groups(graph, groups).seconds
  ceiling_s = share * float(exact.mean())
  found = robust_evaluator.Robust(simulator).price_groups(
      graph, groups, ceiling_s).seconds
  below = exact <= ceiling_s
  np.testing.assert_array_equal(found[below], exact[below])
  assert (found[~below] > ceiling_s).all()
  assert (found <= exact).all()


@_many
@given(_seeds, st.booleans())
def test_the_best_has_its_price_where_only_that_counts(seed: int, tight: bool):
  graph, simulator = _case(seed)
  groups = np.random.default_rng(seed).integers(0, 3, (9, graph.num_groups))
  groups[4] = groups[1]
  if tight:
    peaks = simulator.price_groups(graph, groups).peak_bytes
    simulator = simulator_lib.Simulator(
        dataclasses.replace(
            simulator.cluster, devices=tuple(
                dataclasses.replace(d, memory_bytes=int(peaks[:, p].mean()) + 1)
                for d, p in zip(simulator.cluster.devices,
                                simulator.cluster.memory_pools))),
        simulator.cost_model)
  exact = robust_evaluator.Robust(simulator).price_groups(graph, groups)
  found = robust_evaluator.Robust(simulator).price_groups(
      graph, groups, ceiling_s=None)
  assert found.best() == exact.best()
  assert found.keys()[found.best()] == exact.keys()[exact.best()]
  assert (found.seconds <= exact.seconds).all()
  np.testing.assert_array_equal(found.peak_bytes, exact.peak_bytes)


@pytest.mark.parametrize('rows', [[], [[7, 7, 7]], [[7, 7, 7], [1, 1, 1]]])
def test_of_none_or_of_what_cannot_run_the_best_is_known_too(
    rows: list[list[int]]):
  price = robust_evaluator.Robust(
      simulator_lib.Simulator(clusters.make_cluster()))
  groups = np.array(rows, int).reshape(-1, 3)
  np.testing.assert_array_equal(
      price.price_groups(graphs.chain(3), groups, ceiling_s=None).seconds,
      price.price_groups(graphs.chain(3), groups).seconds)


class _Deaf(robust_evaluator.Robust):
  """Has no ear for ceilings."""

  def price_groups(self, graph: op_graph.OpGraph, devices: np.ndarray,
                   ceiling_s: float | None = math.inf) -> evaluator_lib.Prices:
    return super().price_groups(graph, devices)


@pytest.mark.parametrize('memory_bytes', [1 << 30, 3000])
def test_a_search_finds_the_same_with_ceilings(memory_bytes: int):
  graph = graphs.random_graph(5, 60, window=10)
  cluster = clusters.make_cluster(latency_s=1e-3, memory_bytes=memory_bytes)
  seconds = np.random.default_rng(5).exponential(1., graph.num_ops)
  simulator = simulator_lib.Simulator(cluster, clusters.FixedCosts(seconds))
  found = [
      annealing_placer.AnnealingPlacer(600, ()).place(
          placer_lib.Problem(graph, cluster, kind(simulator))).devices.tolist()
      for kind in (robust_evaluator.Robust, _Deaf)
  ]
  assert found[0] == found[1]


def test_draws_end_with_their_graph():
  price = robust_evaluator.Robust(
      simulator_lib.Simulator(clusters.make_cluster()))
  graph = graphs.chain(3)
  price.price(graph, np.ones((1, 3), int))
  watched = weakref.ref(graph)
  del graph
  gc.collect()
  assert watched() is None


def test_only_simulated_steps_are_made_robust():
  simulator = simulator_lib.Simulator(clusters.make_cluster())
  measured = stopwatches.Stopwatch(simulator)
  assert isinstance(robust_evaluator.objective(simulator),
                    robust_evaluator.Robust)
  assert robust_evaluator.objective(measured) is measured


def test_close_prices_are_by_other_draws_and_more_of_them():
  graph, cluster = graphs.random_graph(5, 60), presets.preset('2xP100')
  simulated = simulator_lib.Simulator(cluster, threads=1)
  of_groups = np.random.default_rng(0).integers(0, 3, (6, graph.num_groups))
  rows = of_groups[:, graph.groups].astype(np.int32)
  few = robust_evaluator.Robust(simulated)
  others = robust_evaluator.Robust(
      simulated, robust_evaluator.RobustConfig(pairs=5)).price(graph,
                                                               rows).seconds
  near, close = few.price(graph, rows), few.price_closely(graph, rows)
  assert (close.seconds != near.seconds).any()
  assert close.keys() == few.price_closely(graph, rows).keys()
  assert (close.seconds >= simulated.price(graph, rows).seconds).all()
  # All draws together are those of both.
  plain_s = simulated.price(graph, rows).seconds
  assert ((others - plain_s) * (close.seconds - plain_s) >= 0).all()
  order = np.arange(60.)
  in_order = few.price_closely(graph, rows, order)
  assert (in_order.seconds != close.seconds).any()


def test_prices_do_not_depend_on_the_number_of_threads():
  """Rows that are not the best were once drawn as many as there are cores."""
  graph, cluster = graphs.random_graph(5, 60), presets.preset('2xP100')
  rows = np.random.default_rng(0).integers(0, 3, (40, graph.num_groups))
  found = [
      robust_evaluator.Robust(simulator_lib.Simulator(
          cluster, threads=threads)).price_groups(graph, rows,
                                                  None).seconds.tolist()
      for threads in (1, 3)
  ]
  assert found[0] == found[1]
