import dataclasses

import numpy as np
import pytest

from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.placers.search import annealing
from gdp_grappler.placers.search import priority_annealing
from gdp_grappler.placers.search import search_budget
from gdp_grappler.placers.search import search_config
from gdp_grappler.placers.search import staged_search
from gdp_grappler.placers.search.edges import order_ranking
from helpers import graphs
from helpers import problems

_COMPARES_ALL = dataclasses.replace(
    search_config.DEFAULT,
    edges=dataclasses.replace(search_config.DEFAULT.edges, compared=99))


def _searches(monkeypatch, evaluations):
  """Those in order; `halfway` is the best of each when its part ended."""
  problem = problems.make(graphs.random_graph(2, 80), presets.preset('2xP100'))
  problem = dataclasses.replace(problem,
                                simulator=simulator.Simulator(problem.cluster))
  searches = []

  class Watched(priority_annealing.PriorityAnnealing):

    def __init__(self, *arguments):
      super().__init__(*arguments)
      self.halfway = self.best_key
      searches.append(self)

    def step(self, progress, count):
      super().step(progress, count)
      if progress < .5:
        self.halfway = self.best_key

  monkeypatch.setattr(priority_annealing, 'PriorityAnnealing', Watched)
  starts = np.ones((1, problem.graph.num_groups), np.int32)
  staged_search.searched(problem, starts, np.random.default_rng(0),
                         search_budget.SearchBudget(evaluations))
  return searches


@pytest.mark.parametrize('evaluations, racers', [(1600, 1), (3200, 2)])
def test_long_searches_in_order_race_and_the_best_goes_on(
    monkeypatch, evaluations, racers):
  searches = _searches(monkeypatch, evaluations)
  assert len(searches) == racers
  # A racer has an eighth of all, the best half of all besides.
  far = [search.evaluations > evaluations / 3 for search in searches]
  assert sum(far) <= 1
  best = min(search.halfway for search in searches)
  assert all(search.halfway == best for search, on in zip(searches, far) if on)


def test_edges_decide_what_is_best_not_what_priorities_promise(monkeypatch):
  """A search and a start promised more than another one, and kept less."""
  graph = graphs.random_graph(2, 40)
  problem = problems.make(graph, presets.preset('2xP100'))
  problem = dataclasses.replace(problem,
                                simulator=simulator.Simulator(problem.cluster))
  rng = np.random.default_rng(0)
  starts = rng.integers(1, 3, (3, graph.num_groups)).astype(np.int32)
  priced = priority_annealing.PriorityAnnealing(problem, starts, rng).starts
  wanted, lost = priced[1][1].devices, []
  asked = order_ranking.OrderRanking._asked

  def kept(self, placement):
    key, placement = asked(self, placement)
    is_wanted = (placement.devices == wanted).all()
    lost.append(1 + len(lost) % 2)
    return (*key[:3], 0. if is_wanted else key[3] * lost[-1]), placement

  monkeypatch.setattr(order_ranking.OrderRanking, '_asked', kept)
  # How much is kept differs, so that all are looked at.
  _, ordered = staged_search.searched(problem, starts, rng,
                                      search_budget.SearchBudget(400),
                                      config=_COMPARES_ALL)
  np.testing.assert_array_equal(ordered.devices, wanted)
  assert ordered.priorities is not None


def test_what_was_best_with_edges_halfway_is_not_forgotten(monkeypatch):
  """It was faster in order later, of which edges kept less."""
  graph = graphs.random_graph(3, 40)
  problem = problems.make(graph, presets.preset('2xP100'))
  problem = dataclasses.replace(problem,
                                simulator=simulator.Simulator(problem.cluster))
  asked, first = order_ranking.OrderRanking._asked, []

  def kept(self, placement):
    first.append(placement.devices)
    key, placement = asked(self, placement)
    is_first = (placement.devices == first[0]).all()
    return (*key[:3], 0.) if is_first else key, placement

  monkeypatch.setattr(order_ranking.OrderRanking, '_asked', kept)
  rng = np.random.default_rng(0)
  starts = rng.integers(1, 3, (1, graph.num_groups)).astype(np.int32)
  _, ordered = staged_search.searched(problem, starts, rng,
                                      search_budget.SearchBudget(3000))
  assert (first[0] != starts[0, graph.groups]).any()
  assert (first[2] != first[0]).any()
  np.testing.assert_array_equal(ordered.devices, first[0])


def test_edges_that_were_known_halfway_are_not_forgotten(monkeypatch):
  """Those of the best first in, first out, which went on to something else."""
  cluster = presets.preset('2xP100')
  for seed in range(16):
    graph = graphs.random_graph(seed, 60)
    problem = problems.make(graph, cluster,
                            simulator=simulator.Simulator(cluster))
    compared, known = order_ranking.OrderRanking.compared, []

    def watched(self, placements, goes_on, compared=compared, known=known):
      found = compared(self, placements, goes_on)
      known.extend(map(self.key, found))
      return found

    with monkeypatch.context() as patch:
      patch.setattr(order_ranking.OrderRanking, 'compared', watched)
      rng = np.random.default_rng(seed)
      starts = rng.integers(1, 3, (4, graph.num_groups)).astype(np.int32)
      found = staged_search.searched(problem, starts, rng,
                                     search_budget.SearchBudget(600))
    edges = order_ranking.OrderRanking(problem)
    assert min(map(edges.key, found)) <= min(known)


@pytest.mark.parametrize('ordered', [False, True])
def test_the_rest_belongs_to_the_order_that_is_better_with_edges(
    monkeypatch, ordered):
  cluster = presets.preset('2xP100')
  graph = graphs.random_graph(2, 40)
  problem = problems.make(graph, cluster,
                          simulator=simulator.Simulator(cluster))
  asked, first = order_ranking.OrderRanking._asked, []
  anneal = staged_search.anneal

  def kept(self, placement):
    is_ordered = placement.priorities is not None
    key, placement = asked(self, placement)
    return (*key[:3], 0. if is_ordered == ordered else 9.), placement

  def watched(annealings, *arguments, **options):
    first.append(type(annealings[0]))
    return anneal(annealings, *arguments, **options)

  monkeypatch.setattr(order_ranking.OrderRanking, '_asked', kept)
  monkeypatch.setattr(staged_search, 'anneal', watched)
  rng = np.random.default_rng(0)
  starts = rng.integers(1, 3, (1, graph.num_groups)).astype(np.int32)
  config = dataclasses.replace(
      _COMPARES_ALL, edges=dataclasses.replace(_COMPARES_ALL.edges, fewest=99))
  staged_search.searched(problem, starts, rng, search_budget.SearchBudget(800),
                         config=config)
  assert first[-1] is (priority_annealing.PriorityAnnealing
                       if ordered else annealing.Annealing)
