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


@pytest.mark.parametrize('each_s, furthers, limit_s', [(.01, 16, 10.),
                                                       (.1, 16, 10.),
                                                       (.3, 16, 10.),
                                                       (1., 16, 10.)])
def test_starts_in_order_fit_in_the_time_that_is_left(each_s, furthers,
                                                      limit_s):
  """What the search of a smaller graph found was priced however late it was."""
  problem, prices = _slow_problem(each_s)
  rng = np.random.default_rng(0)
  starts = rng.integers(1, 3, (8, problem.graph.num_groups)).astype(np.int32)
  further = rng.integers(1, 3, (furthers, problem.graph.num_groups))
  staged_search.search(
      problem, starts, rng,
      search_budget.SearchBudget(10**6, limit_s, clock=prices.clock),
      further=[further.astype(np.int32)])
  # At last it prices the best of each order, and edges.
  assert prices.now <= limit_s + 3 * each_s
