import dataclasses

import numpy as np
import pytest

from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.placers.search import annealing
from gdp_grappler.placers.search import priority_annealing
from gdp_grappler.placers.search import search_budget
from gdp_grappler.placers.search import staged_search
from gdp_grappler.placers.search.edges import order_ranking
from helpers import clusters
from helpers import graphs
from helpers import problems
from helpers import slow_prices


def test_what_was_best_with_edges_halfway_is_not_forgotten(monkeypatch):
  """It was faster in order later, of which edges kept less."""
  graph = graphs.random_graph(3, 120)
  problem = problems.make(graph, presets.preset('2xP100'))
  problem = dataclasses.replace(problem,
                                simulator=simulator.Simulator(problem.cluster))
  asked, first = order_ranking.OrderRanking._compute_edges, []

  def kept(self, placement):
    first.append(placement.devices)
    key, placement = asked(self, placement)
    is_first = (placement.devices == first[0]).all()
    return (*key[:3], 0.) if is_first else key, placement

  monkeypatch.setattr(order_ranking.OrderRanking, '_compute_edges', kept)
  rng = np.random.default_rng(0)
  starts = rng.integers(1, 3, (1, graph.num_groups)).astype(np.int32)
  _, ordered = staged_search.search(problem, starts, rng,
                                    search_budget.SearchBudget(3000))
  assert (first[0] != starts[0, graph.groups]).any()
  assert (first[-1] != first[0]).any()
  np.testing.assert_array_equal(ordered.devices, first[0])


def test_edges_that_were_known_halfway_are_not_forgotten(monkeypatch):
  """Those of the best first in, first out, which went on to something else."""
  cluster = presets.preset('2xP100')
  for seed in range(16):
    graph = graphs.random_graph(seed, 60)
    problem = problems.make(graph, cluster,
                            simulator=simulator.Simulator(cluster))
    likeliest, known = staged_search._StagedSearch._most_promising, []

    def watched(self, likeliest=likeliest, known=known):
      known.append(likeliest(self))
      return known[-1]

    with monkeypatch.context() as patch:
      patch.setattr(staged_search._StagedSearch, '_most_promising', watched)
      rng = np.random.default_rng(seed)
      starts = rng.integers(1, 3, (4, graph.num_groups)).astype(np.int32)
      found = staged_search.search(problem, starts, rng,
                                   search_budget.SearchBudget(600))
    edges = order_ranking.OrderRanking(problem)
    assert min(map(edges.key, found)) <= edges.key(known[0][1])


@pytest.mark.parametrize('ordered', [False, True])
def test_the_rest_belongs_to_the_order_that_is_better_with_edges(
    monkeypatch, ordered):
  cluster = presets.preset('2xP100')
  graph = graphs.random_graph(2, 40)
  problem = problems.make(graph, cluster,
                          simulator=simulator.Simulator(cluster))
  asked, first = order_ranking.OrderRanking._compute_edges, []
  anneal = staged_search.anneal

  def kept(self, placement):
    is_ordered = placement.priorities is not None
    key, placement = asked(self, placement)
    return (*key[:3], 0. if is_ordered == ordered else 9.), placement

  def watched(annealings, *arguments, **options):
    first.append(type(annealings[0]))
    return anneal(annealings, *arguments, **options)

  monkeypatch.setattr(order_ranking.OrderRanking, '_compute_edges', kept)
  monkeypatch.setattr(staged_search, 'anneal', watched)
  rng = np.random.default_rng(0)
  starts = rng.integers(1, 3, (1, graph.num_groups)).astype(np.int32)
  staged_search.search(problem, starts, rng, search_budget.SearchBudget(800))
  assert first[-1] is (priority_annealing.PriorityAnnealing
                       if ordered else annealing.Annealing)


def test_the_search_in_order_begins_with_varied_placements(monkeypatch):
  """Near copies of the best one, first in, first out, were its only starts."""
  cluster = presets.preset('2xP100')
  graph = graphs.random_graph(2, 40)
  problem = problems.make(graph, cluster,
                          simulator=simulator.Simulator(cluster))
  stock, given = priority_annealing.PriorityAnnealing, []

  def watched(problem, starts, *rest):
    given.append(starts.tolist())
    return stock(problem, starts, *rest)

  monkeypatch.setattr(priority_annealing, 'PriorityAnnealing', watched)
  rng = np.random.default_rng(0)
  starts, varied, further = rng.integers(1, 3, (3, 5, graph.num_groups)).astype(
      np.int32)
  for options in ({}, {'varied': varied, 'further': [further]}):
    staged_search.search(problem, starts, rng, search_budget.SearchBudget(200),
                         **options)
  usual, other = given
  assert sorted(usual[1:]) == sorted(starts.tolist())
  assert other[1:] == further.tolist() + varied.tolist()


def _watch_annealings(monkeypatch):
  """Returns the starts of annealings that are made, and restarts."""
  starts, restarts = [], []
  stock, restart = annealing.Annealing.__init__, annealing.Annealing.restart

  def watched(self, problem, rows, *rest):
    starts.append(rows.tolist())
    stock(self, problem, rows, *rest)

  def restarted(self, rows):
    restarts.append((self, rows.tolist()))
    restart(self, rows)

  monkeypatch.setattr(annealing.Annealing, '__init__', watched)
  monkeypatch.setattr(annealing.Annealing, 'restart', restarted)
  return starts, restarts


@pytest.mark.parametrize('orders', [False, True])
def test_short_annealings_begin_with_several_placements(monkeypatch, orders):
  """From the fastest start, annealing found 82 ms; from a slower one, 65 ms."""
  cluster = presets.preset('2xP100')
  graph = graphs.random_graph(2, 60)
  problem = problems.make(graph, cluster,
                          simulator=simulator.Simulator(cluster),
                          may_add_edges=orders)
  made, restarts = _watch_annealings(monkeypatch)
  rng = np.random.default_rng(0)
  starts, several = rng.integers(1, 3,
                                 (2, 4, graph.num_groups)).astype(np.int32)
  found = staged_search.search(problem, starts, rng,
                               search_budget.SearchBudget(4000),
                               several=several)
  assert made[0] == starts.tolist()
  assert made[1:5] == [[row] for row in several.tolist()]
  first, last = restarts[0], restarts[5]
  assert first[0] is last[0] and len(last[1]) == 5
  keys = problem.evaluator.price_groups(problem.graph,
                                        np.array(last[1], np.int32)).keys()
  fifo = problem.evaluator.price(problem.graph, found[0].devices[None]).keys()
  assert fifo[0] <= min(keys)


@pytest.mark.parametrize('limit_s, several', [(.5, 0), (20., 3), (200., 4)])
def test_short_annealings_need_time(monkeypatch, limit_s, several):
  problem, prices = _slow_problem(.05)
  problem = dataclasses.replace(problem, may_add_edges=False)
  made, _ = _watch_annealings(monkeypatch)
  rng = np.random.default_rng(0)
  starts = rng.integers(1, 3, (4, problem.graph.num_groups)).astype(np.int32)
  staged_search.search(
      problem, starts, rng,
      search_budget.SearchBudget(10**6, limit_s, clock=prices.clock),
      several=starts)
  assert len(made) == 1 + several
  assert prices.now <= limit_s + 16 * .05  # The first batch always begins.


@pytest.mark.parametrize('memory_bytes', [100, 160])
def test_no_short_annealing_if_no_start_fits(monkeypatch, memory_bytes):
  """Short annealings would not begin with the packed placements, which fit."""
  problem = problems.make(graphs.make_graph(num_ops=4, param_bytes=80),
                          clusters.make_cluster(2, memory_bytes=memory_bytes))
  made, _ = _watch_annealings(monkeypatch)
  starts = np.array([[1] * 4, [2] * 4], np.int32)
  staged_search.search(problem, starts, np.random.default_rng(0),
                       search_budget.SearchBudget(1000), several=starts)
  assert len(made) == 1


def _slow_problem(seconds):
  cluster = presets.preset('2xP100')
  problem = problems.make(graphs.random_graph(2, 40), cluster,
                          simulator=simulator.Simulator(cluster))
  prices = slow_prices.SlowPrices(problem.evaluator, seconds)
  return problem.priced_by(prices), prices


def test_a_batch_that_does_not_fit_does_not_begin():
  """One of a large graph takes seconds, and went beyond the end."""
  problem, prices = _slow_problem(.25)
  search = annealing.Annealing(problem,
                               np.ones((1, problem.graph.num_groups), np.int32),
                               np.random.default_rng(0))
  begin_s = prices.now
  budget = search_budget.SearchBudget(1000, 10., clock=prices.clock)
  staged_search.anneal([search], budget)
  assert prices.now - begin_s == 8.  # Two batches of four seconds.


@pytest.mark.parametrize('several', [0, 4])
@pytest.mark.parametrize('each_s, furthers, limit_s', [(.01, 16, 10.),
                                                       (.1, 16, 10.),
                                                       (.3, 16, 10.),
                                                       (1., 16, 10.)])
def test_starts_in_order_fit_in_the_time_that_is_left(each_s, furthers, limit_s,
                                                      several):
  """What the search of a smaller graph found was priced however late it was."""
  problem, prices = _slow_problem(each_s)
  rng = np.random.default_rng(0)
  starts = rng.integers(1, 3, (8, problem.graph.num_groups)).astype(np.int32)
  further = rng.integers(1, 3, (furthers, problem.graph.num_groups))
  staged_search.search(
      problem, starts, rng,
      search_budget.SearchBudget(10**6, limit_s, clock=prices.clock),
      further=[further.astype(np.int32)], several=starts[:several])
  # At last it prices the best of each order, and edges.
  assert prices.now <= limit_s + 3 * each_s
