"""Tests of order_ranking."""

import dataclasses

import numpy as np
import pytest

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.ordering import control_edges
from gdp_grappler.evaluation.ordering import critical_path_order
from gdp_grappler.evaluation.ordering import edge_pricer
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.placers.search.edges import edge_selection
from gdp_grappler.placers.search.edges import order_ranking
from helpers import graphs
from helpers import problems


@pytest.fixture(name='problem')
def fixture_problem():
  problem = problems.make(graphs.random_graph(2, 40), presets.preset('2xP100'))
  return dataclasses.replace(problem,
                             simulator=simulator.Simulator(problem.cluster))


def _placements(problem, count):
  rng = np.random.default_rng(0)
  rows = [[rng.choice(np.flatnonzero(ok)) for ok in problem.allowed]
          for _ in range(count)]
  return [
      placement_lib.from_groups(problem.graph, np.array(row), problem.cluster)
      for row in rows
  ]


def test_what_never_runs_is_the_last(problem):
  edges = order_ranking.OrderRanking(problem)
  good, = _placements(problem, 1)
  bad = placement_lib.Placement(
      np.arange(problem.graph.num_ops) % 3, problem.cluster)
  assert bad.violations(problem.graph)
  assert edges.key(good) < edges.key(bad)
  assert (edges.best([bad, good]).devices == good.devices).all()


def test_ranks_are_steps_with_the_edges_that_pay(problem):
  edges = order_ranking.OrderRanking(problem)
  for placement in _placements(problem, 6):
    order = control_edges.control_edges(
        problem.graph, placement, problem.simulator,
        control_edges.OrderConfig(max_simulated_ops=500_000, only_wanted=False))
    assert edges.key(placement)[-1] == pytest.approx(order.with_edges_s)


def test_the_best_has_the_order_that_its_edges_enforce(problem):
  edges = order_ranking.OrderRanking(problem)
  placements = _placements(problem, 6)
  best = edges.best(placements)
  keys = [edges.key(placement) for placement in placements]
  at = keys.index(min(keys))
  assert (best.devices == placements[at].devices).all()
  asked = control_edges.control_edges(problem.graph, best, problem.simulator)
  assert asked.with_edges_s <= keys[at][-1] * (1 + 1e-9)
  assert edges.best(placements[at:at + 1]) is best


def test_an_order_is_its_own_or_one_that_edges_bring(problem):
  edges = order_ranking.OrderRanking(problem)
  critical = [
      critical_path_order.with_critical_path_order(problem.graph, placement,
                                                   problem.simulator)
      for placement in _placements(problem, 6)
  ]
  assert all(map(edges.orders, critical))
  for placement in _placements(problem, 6):
    order = control_edges.control_edges(
        problem.graph, placement, problem.simulator,
        control_edges.OrderConfig(max_simulated_ops=1_000_000,
                                  only_wanted=False))
    assert edges.orders(placement) == bool(len(order.control_edges))


def test_nothing_is_looked_for_twice(problem, monkeypatch):
  asked, stock = [], control_edges.control_edges
  monkeypatch.setattr(
      control_edges, 'control_edges', lambda *arguments:
      (asked.append(arguments), stock(*arguments))[1])
  placement, = _placements(problem, 1)
  critical = critical_path_order.with_critical_path_order(
      problem.graph, placement, problem.simulator)
  edges = order_ranking.OrderRanking(problem)
  for _ in range(2):
    edges.key(placement)
    edges.best([placement])
    edges.key(critical)
  assert len(asked) == 2


def test_the_best_keeps_its_edges(problem, monkeypatch):
  """Callers of the search looked for the same edges again."""
  best = order_ranking.OrderRanking(problem).best(_placements(problem, 6))
  monkeypatch.setattr(edge_pricer, 'EdgePricer', None)
  choice = edge_selection.best(problem, [best], problem.simulator,
                               lambda _: control_edges.OrderConfig())
  assert choice.placement is best and choice.order is best.order
  assert choice.with_order.known_order is best.order
