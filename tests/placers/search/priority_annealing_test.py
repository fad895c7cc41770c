import dataclasses

import numpy as np
import pytest

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation import recording_evaluator
from gdp_grappler.evaluation import robust_evaluator
from gdp_grappler.evaluation.ordering import critical_path_order
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.placers.search import priority_annealing
from helpers import clusters
from helpers import graphs
from helpers import problems
from helpers import search_configs
from helpers import stopwatches
from helpers import unrolled


def _problem(graph, cluster=None, **fields):
  problem = problems.make(graph, cluster or presets.preset('2xP100'), **fields)
  return dataclasses.replace(problem,
                             simulator=simulator.Simulator(problem.cluster))


def _search(problem, starts=None, seed=0):
  if starts is None:
    starts = np.ones((1, problem.graph.num_groups), np.int32)
  return priority_annealing.PriorityAnnealing(problem, starts,
                                              np.random.default_rng(seed))


def _run(search, steps):
  for step in range(steps):
    search.price_batch(step / steps, 16)


def _price(problem, placement):
  """The price of a placement in the order of its priorities."""
  return problem.evaluator.price_in_order(problem.graph,
                                          placement.devices[None],
                                          placement.priorities)


@pytest.mark.parametrize(
    'wrap', [robust_evaluator.Robust, recording_evaluator.Recorder])
@pytest.mark.parametrize('seed', range(3))
def test_priorities_travel_with_the_placement(seed, wrap):
  problem = _problem(graphs.random_graph(seed, 80), wrap=wrap)
  search = _search(problem)
  before = search.best_key
  _run(search, 40)
  assert search.best_key < before
  assert search.best.violations(problem.graph) == ()
  assert _price(problem, search.best).keys() == [search.best_key]


def test_the_start_that_is_best_in_order_is_taken():
  problem = _problem(graphs.random_graph(1, 60))
  rng = np.random.default_rng(0)
  starts = rng.integers(1, 3, (5, problem.graph.num_groups)).astype(np.int32)
  keys = [_search(problem, row[None]).best_key for row in starts]
  assert _search(problem, starts).best_key == min(keys)


@pytest.mark.parametrize('seed', range(6))
def test_starts_rank_by_the_best_of_their_orders(seed):
  problem = _problem(unrolled.make(4, 6).graph)
  rng = np.random.default_rng(seed)
  rows = rng.integers(1, 3, (12, problem.graph.num_groups)).astype(np.int32)
  search = _search(problem, rows)
  keys = [key for key, _ in search.starts]
  assert keys == sorted(keys) and search.best_key == keys[0]
  for key, placement in search.starts:
    assert _price(problem, placement).keys() == [key]


def test_repeatable():
  first, second = (
      _search(_problem(graphs.random_graph(2, 60)), seed=3) for _ in range(2))
  _run(first, 20)
  _run(second, 20)
  assert first.best.devices.tolist() == second.best.devices.tolist()
  assert first.best.priorities.tolist() == second.best.priorities.tolist()


def test_counts_what_it_prices_and_keeps_it_out_of_the_curve():
  problem = _problem(graphs.random_graph(2, 60),
                     wrap=recording_evaluator.Recorder)
  search = _search(problem)
  before = len(problem.evaluator.curve)
  _run(search, 30)
  assert search.evaluations == problem.evaluator.evaluations
  assert len(problem.evaluator.curve) == before


def test_a_heavy_branch_goes_first():
  # Two ops of one GPU are ready at once. Each has a successor on the other GPU.
  # The op before the longer successor has the higher priority.
  edges = [(0, 2, 8), (1, 3, 8)]
  seconds = [[9., 1., 1.], [9., 1., 1.], [9., 9., 0.], [9., 9., 5.]]
  problem = _problem(graphs.make_graph(edges, 4),
                     clusters.make_cluster(2, latency_s=0.), seconds=seconds)
  search = _search(problem, np.array([[1, 1, 2, 2]], np.int32))
  ranks = search.best.priorities
  assert ranks[1] > ranks[0]


def _cpus():
  cluster = presets.preset('2xP100')
  return clusters.synchronous(cluster)


def _one_gpu():
  cluster = presets.preset('2xP100')
  devices = [
      dataclasses.replace(d, launch=cluster_lib.SYNCHRONOUS)
      if d.short_name == 'GPU:1' else d for d in cluster.devices
  ]
  return dataclasses.replace(cluster, devices=tuple(devices))


@pytest.mark.parametrize('make', [_cpus, _one_gpu])
def test_where_nothing_runs_ahead_orders_do_not_pay(make):
  graph = graphs.chain(3)
  assert _problem(graph).orders_pay
  assert not _problem(graph, make()).orders_pay


def test_orders_that_nobody_wants_are_not_looked_for():
  problem = _problem(graphs.chain(3))
  assert not dataclasses.replace(problem, may_add_edges=False).orders_pay
  assert not dataclasses.replace(problem, simulator=None).orders_pay
  assert not _problem(graphs.chain(3), wrap=stopwatches.Stopwatch).orders_pay


class _Listener:
  """Gives all moves the same score; records the orders that it gets."""

  def __init__(self):
    self.orders, self.asked = [], []

  def set_priorities(self, priorities):
    self.orders.append(priorities)

  def scores(self, incumbent, candidates, kinds):
    del incumbent, kinds
    self.asked.append(len(self.orders))
    return np.zeros(len(candidates))


@pytest.mark.parametrize('steps, refreshed', [(5, 1), (20, 4), (120, 11)])
def test_few_steps_are_not_spent_on_priorities(monkeypatch, steps, refreshed):
  """Of five batches on a large graph, four once computed new priorities."""
  found = []
  stock = priority_annealing.PriorityAnnealing._refresh
  monkeypatch.setattr(
      priority_annealing.PriorityAnnealing, '_refresh', lambda self, progress:
      (found.append(progress), stock(self, progress)))
  problem = _problem(graphs.random_graph(1, 40))
  search = priority_annealing.PriorityAnnealing(
      problem, np.ones((1, problem.graph.num_groups), np.int32),
      np.random.default_rng(0))
  for step in range(steps):
    search.price_batch(step / steps, 16)
  assert len(found) == refreshed


def test_a_model_hears_every_order_before_it_is_asked(monkeypatch):
  # On this graph, new priorities are better. On many graphs none are.
  problem = _problem(graphs.random_graph(1, 80))
  listener = _Listener()
  # With this configuration, the annealing prices all moves that it draws.
  search_configs.patch(monkeypatch, annealing={'draws': 1, 'unfiltered': 1.})
  search = priority_annealing.PriorityAnnealing(
      problem, np.ones((1, problem.graph.num_groups), np.int32),
      np.random.default_rng(0), listener)
  _run(search, 40)
  assert min(listener.asked) == 1
  assert len(listener.orders) > 1
  # The best placement has one of these orders.
  assert any(
      (search.best.priorities == order).all() for order in listener.orders)
  plain = _search(problem)
  _run(plain, 40)
  assert plain.best_key == search.best_key


def test_a_start_gets_the_order_of_its_critical_path():
  graph = unrolled.make(4, 6).graph
  problem = _problem(graph)
  rows = np.random.default_rng(0).integers(1, 3, (6, graph.num_groups)).astype(
      np.int32)
  wanted = np.stack([
      critical_path_order.upward_ranks(graph, row[graph.groups],
                                       problem.cluster, problem.op_seconds)
      for row in rows
  ])
  keys = problem.evaluator.price_in_order(graph, rows[:, graph.groups],
                                          wanted).keys()
  search = _search(problem, rows)
  assert [key for key, _ in search.starts] == sorted(keys)
  assert search.best_key == min(keys)
  assert _price(problem, search.best).keys() == [search.best_key]


def test_priorities_made_anew_count_as_prices(monkeypatch):
  problem = _problem(unrolled.make(4, 6).graph)
  search = _search(problem)
  stock, asked = search._in_order, []

  def watched(rows):
    asked.append(stock(rows))
    return asked[-1]

  monkeypatch.setattr(search, '_in_order', watched)
  before = search.evaluations
  _run(search, 40)
  assert asked and search.evaluations == before + 40 * 16


@pytest.mark.parametrize('seed', range(4))
def test_late_gains_are_kept(seed, monkeypatch):
  """Close prices were once compared with a usual price of the best so far."""
  problem = _problem(graphs.random_graph(seed, 60),
                     wrap=robust_evaluator.Robust)
  search_configs.patch(monkeypatch, annealing={'closely_after': 100})
  search = priority_annealing.PriorityAnnealing(
      problem, np.ones((1, problem.graph.num_groups), np.int32),
      np.random.default_rng(seed))
  _run(search, 40)
  assert search._search.looks_closely
  assert search.best_key <= search._search.best_key
  closely = problem.evaluator.price_closely(problem.graph,
                                            search.best.devices[None],
                                            search.best.priorities[None])
  assert closely.keys() == [search.best_key]


def test_close_prices_are_in_the_order_of_priorities(monkeypatch):
  """A close FIFO price is not comparable with a price by priorities."""
  problem = _problem(graphs.random_graph(0, 60), wrap=robust_evaluator.Robust)
  search_configs.patch(monkeypatch, annealing={'closely_after': 100})
  stock, orders = problem.evaluator.price_closely, []

  def watched(graph, devices, priorities=None):
    orders.append(priorities)
    return stock(graph, devices, priorities)

  monkeypatch.setattr(problem.evaluator, 'price_closely', watched)
  search = _search(problem)
  _run(search, 40)
  assert len(orders) > 2 and all(order is not None for order in orders)


@pytest.mark.parametrize('overflow_bytes, taken', [(0, True), (1, False)])
def test_priorities_that_overflow_a_memory_are_not_taken(
    monkeypatch, overflow_bytes, taken):
  """The step alone once decided."""
  search = _search(_problem(graphs.random_graph(0, 60)))
  before = search._search.priorities
  key = (overflow_bytes > 0, False, overflow_bytes, 0.)
  ordered = priority_annealing._InOrder(key, search._search.best, before + 1)
  monkeypatch.setattr(search, '_in_order', lambda rows: [ordered])
  search._refresh(.5)
  assert (search._search.priorities is not before) == taken
