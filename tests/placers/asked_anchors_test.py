"""The anchors that the default placer calls; see `default_placer_test`."""

import dataclasses

import numpy as np
import pytest

from gdp_grappler import deadlines
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import default_placer
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.policy import move_policy
from gdp_grappler.placers.search import multilevel
from gdp_grappler.placers.search import priced_placements
from gdp_grappler.placers.search import staged_search
from gdp_grappler.placers.search.moves import moves as moves_lib
from helpers import clusters
from helpers import graphs
from helpers import problems
from helpers import watched_anchors


@pytest.fixture(autouse=True)
def _only_anchors(monkeypatch):
  """`gdp_policy` proposes nothing, and no search follows."""
  monkeypatch.setattr(move_policy, 'before_search', lambda *_: None)
  monkeypatch.setattr(
      staged_search, 'search', lambda problem, starts, *_, **__:
      (placement_lib.from_groups(problem.graph, starts[0], problem.cluster),))


def _add_halves(monkeypatch):
  """Makes `gdp_policy` propose; returns the arguments of its calls."""
  said = []

  def best(problem, *arguments):
    said.append((problem.clock(), *arguments))
    found = priced_placements.PricedPlacements(problem.graph, problem.evaluator)
    found.add([np.arange(problem.graph.num_groups) % 2 + 1])
    return found

  monkeypatch.setattr(move_policy, 'before_search', best)
  return said


_FEW, _FEW_REPEATED = ['structured', 'metis'], ['structured']
_ALL, _TIGHT_REPEATED = [*_FEW, 'm_etf'], [*_FEW_REPEATED, 'm_etf']


@pytest.mark.parametrize(
    'proposes, repeats, memory_bytes, host_bytes, expected',
    [
        (True, False, 1 << 40, 1 << 40, _FEW),
        (True, True, 1 << 40, 1 << 40, _FEW_REPEATED),
        (False, False, 1 << 40, 1 << 40, _ALL),
        (False, True, 1 << 40, 1 << 40, _ALL),
        (True, False, 1000, 1000, _ALL),
        (True, True, 1000, 1000, _ALL),
        (True, False, 1000, 1 << 40, _ALL),
        (True, True, 1000, 1 << 40, _ALL),
        # Only the halves of `gdp_policy` fit, and no single device.
        (True, False, 3000, 3000, _ALL),
        (True, True, 3000, 3000, _TIGHT_REPEATED),
    ])
def test_anchors_like_the_policy_are_asked_without_it_or_in_tight_memory(
    monkeypatch, proposes, repeats, memory_bytes, host_bytes, expected):
  """If only the slow host had room, these anchors were once not called."""
  if proposes:
    _add_halves(monkeypatch)
  asked = watched_anchors.watch(monkeypatch, watched_anchors.Clock(), 0)
  monkeypatch.setattr(multilevel, 'coarsened', lambda *_: object()
                      if repeats else None)
  monkeypatch.setattr(multilevel, 'is_worth', lambda seconds: False)
  cluster = clusters.make_cluster(2, memory_bytes=memory_bytes)
  host, *others = cluster.devices
  cluster = dataclasses.replace(
      cluster, devices=(dataclasses.replace(host,
                                            memory_bytes=host_bytes), *others))
  problem = problems.make(graphs.make_graph(num_ops=12,
                                            param_bytes=400), cluster,
                          np.array([[100., 1., 1.]] * 12), time_budget_s=40.,
                          clock=watched_anchors.Clock())
  default_placer.DefaultPlacer(anchors=('metis', 'structured', 'm_etf'),
                               asks_policy=False).place(problem)
  assert [name for name, _ in asked] == expected


def _problem(**fields):
  return problems.make(graphs.make_graph(num_ops=12), seconds=1., **fields)


@pytest.mark.parametrize('orders, repeats, has_time, expected', [
    (False, False, True, [('structured', 1), ('metis', 1)]),
    (True, False, True, [('structured', 0), ('metis', 0)]),
    (True, True, True, [('structured', 1)]),
    (True, False, False, [('structured', 1), ('metis', 1)]),
])
def test_for_an_order_structured_and_metis_are_asked_first(
    monkeypatch, orders, repeats, has_time, expected):
  """With edges, placements of these anchors are often the fastest starts.

  A Perceiver on four V100s took 56 ms from `structured`, and 73 ms without. If
  there is a coarse graph, its search needs this time.
  """
  said = _add_halves(monkeypatch)
  asked = watched_anchors.watch(monkeypatch, watched_anchors.Clock(), 0,
                                lambda: len(said))
  monkeypatch.setattr(multilevel, 'coarsened', lambda *_: object()
                      if repeats else None)
  monkeypatch.setattr(multilevel, 'is_worth', lambda seconds: False)
  monkeypatch.setattr(placer_lib.Problem, 'orders_pay', orders)
  monkeypatch.setattr(move_policy, 'has_time', lambda *_: has_time)
  default_placer.DefaultPlacer(anchors=('metis', 'structured', 'heft'),
                               asks_policy=False).place(_problem())
  assert asked == expected


@pytest.mark.parametrize('asks', [True, False])
def test_the_policy_of_moves_is_asked_before_other_anchors(monkeypatch, asks):
  said = _add_halves(monkeypatch)
  asked = watched_anchors.watch(monkeypatch, watched_anchors.Clock(), 0,
                                lambda: len(said))
  placer = default_placer.DefaultPlacer(anchors=('round_robin', 'metis'),
                                        asks_policy=False, asks_moves=asks)
  placer.place(_problem(repeatable=True, time_budget_s=40., clock=lambda: 0.))
  assert asked == [('metis', int(asks)), ('round_robin', int(asks))]
  assert [row[:3] for row in said] == [(0., 40., 20.)] * asks
  assert all(row[-1] is not None for row in said)  # The move network.


def test_the_policy_of_moves_begins_with_a_quick_schedule(monkeypatch):
  """The policy's own schedules of a Cholesky factorization took 10 % longer."""
  said = _add_halves(monkeypatch)
  default_placer.DefaultPlacer(anchors=('round_robin',),
                               asks_policy=False).place(_problem())
  assert np.bincount(said[0][4][0]).tolist() == [0, 6, 6]


@pytest.mark.parametrize('needed_s, fit, asked', [
    (1., True, []),
    (.1, True, ['metis', 'round_robin']),
    (1., False, ['metis', 'm_etf', 'round_robin']),
])
def test_in_a_short_time_only_the_policy_of_moves_is_asked(
    monkeypatch, needed_s, fit, asked):
  clock = watched_anchors.Clock()
  seen = watched_anchors.watch(monkeypatch, clock, 0, lambda: 0)

  def best(problem, worth_s, budget_s, *_):
    clock.now += budget_s
    found = priced_placements.PricedPlacements(problem.graph, problem.evaluator)
    found.add([np.arange(problem.graph.num_groups) % 2 + 1])
    return found

  monkeypatch.setattr(move_policy, 'before_search', best)
  monkeypatch.setattr(move_policy, 'needed_s', lambda problem: needed_s)
  monkeypatch.setattr(priced_placements.PricedPlacements, 'fastest_fits', fit)
  placer = default_placer.DefaultPlacer(
      anchors=('round_robin', 'm_etf', 'metis'), asks_policy=False)
  problem = _problem(time_budget_s=1., clock=clock)
  found = priced_placements.PricedPlacements(problem.graph, problem.evaluator)
  found.add(np.zeros((1, problem.graph.num_groups), np.int32))
  placer._ask(problem, found, 0., deadlines.within(1., clock), False,
              moves_lib.Moves(problem), False)
  assert [name for name, _ in seen] == asked
