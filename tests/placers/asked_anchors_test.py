"""Which anchors the default placer asks; see `default_placer_test`."""

import dataclasses

import numpy as np
import pytest

from gdp_grappler import deadlines
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import default_placer
from gdp_grappler.placers.policy import move_policy
from gdp_grappler.placers.search import multilevel
from gdp_grappler.placers.search import priced_placements
from gdp_grappler.placers.search import search_worth
from gdp_grappler.placers.search import staged_search
from gdp_grappler.placers.search.moves import moves as moves_lib
from helpers import clusters
from helpers import graphs
from helpers import problems
from helpers import watched_anchors


@pytest.fixture(autouse=True)
def _only_anchors(monkeypatch):
  """The policy of moves proposes nothing, and no search follows."""
  monkeypatch.setattr(move_policy, 'before_search', lambda *_: None)
  monkeypatch.setattr(
      staged_search, 'search', lambda problem, starts, *_, **__:
      (placement_lib.from_groups(problem.graph, starts[0], problem.cluster),))


@pytest.mark.parametrize('memory_bytes, expected',
                         [(1 << 40, ['structured']),
                          (1000, ['structured', 'metis', 'm_etf'])])
def test_where_a_graph_repeats_itself_others_are_asked_if_it_overflows(
    monkeypatch, memory_bytes, expected):
  """All of it fitted on the host, in a hundred times of the seconds."""
  asked = watched_anchors.watch(monkeypatch, watched_anchors.Clock(), 0)
  monkeypatch.setattr(multilevel, 'coarsened', lambda *arguments: object())
  monkeypatch.setattr(multilevel, 'is_worth', lambda seconds: False)
  cluster = clusters.make_cluster(2, memory_bytes=memory_bytes)
  host, *others = cluster.devices
  cluster = dataclasses.replace(
      cluster, devices=(dataclasses.replace(host,
                                            memory_bytes=1 << 40), *others))
  problem = problems.make(graphs.make_graph(num_ops=12,
                                            param_bytes=400), cluster,
                          np.array([[100., 1., 1.]] * 12),
                          clock=watched_anchors.Clock())
  default_placer.DefaultPlacer(anchors=('metis', 'structured', 'm_etf'),
                               asks_policy=False).place(problem)
  assert [name for name, _ in asked] == expected


def _problem(**fields):
  return problems.make(graphs.make_graph(num_ops=12), seconds=1., **fields)


@pytest.mark.parametrize('asks', [True, False])
def test_the_policy_of_moves_is_asked_before_other_anchors(monkeypatch, asks):
  said = []
  asked = watched_anchors.watch(monkeypatch, watched_anchors.Clock(), 0,
                                lambda: len(said))

  def best(problem, worth_s, budget_s, moves, starts, network):
    assert network is not None
    said.append((worth_s, budget_s, problem.clock(), len(starts)))
    found = priced_placements.PricedPlacements(problem.graph, problem.evaluator)
    found.add([np.arange(problem.graph.num_groups) % 2 + 1])
    return found

  monkeypatch.setattr(move_policy, 'before_search', best)
  placer = default_placer.DefaultPlacer(anchors=('round_robin', 'm_etf'),
                                        asks_policy=False, asks_moves=asks)
  placer.place(_problem(repeatable=True, time_budget_s=40., clock=lambda: 0.))
  assert asked == [('round_robin', int(asks)), ('m_etf', int(asks))]
  assert [row[:3] for row in said] == [(40., 20., 0.)] * asks


@pytest.mark.parametrize('needed_s, fits, asked', [
    (1., True, []),
    (.1, True, ['round_robin', 'm_etf']),
    (1., False, ['round_robin', 'm_etf']),
])
def test_in_a_short_time_only_the_policy_of_moves_is_asked(
    monkeypatch, needed_s, fits, asked):
  clock = watched_anchors.Clock()
  seen = watched_anchors.watch(monkeypatch, clock, 0, lambda: 0)

  def best(problem, worth_s, budget_s, *_):
    clock.now += budget_s
    found = priced_placements.PricedPlacements(problem.graph, problem.evaluator)
    found.add([np.arange(problem.graph.num_groups) % 2 + 1])
    return found

  monkeypatch.setattr(move_policy, 'before_search', best)
  monkeypatch.setattr(move_policy, 'needed_s', lambda problem: needed_s)
  monkeypatch.setattr(priced_placements.PricedPlacements, 'fits', fits)
  placer = default_placer.DefaultPlacer(anchors=('round_robin', 'm_etf'),
                                        asks_policy=False)
  problem = _problem(time_budget_s=2., clock=clock)
  found = priced_placements.PricedPlacements(problem.graph, problem.evaluator)
  found.add(np.zeros((1, problem.graph.num_groups), np.int32))
  placer._ask(problem, found, search_worth.SearchWorth(0., 2.),
              deadlines.within(2., clock), False, moves_lib.Moves(problem))
  assert [name for name, _ in seen] == asked
