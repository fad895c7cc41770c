"""The part of a time budget that the default placer uses."""

import dataclasses
import itertools
import time

import numpy as np
import pytest

from gdp_grappler import deadlines
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation import recording_evaluator
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.placers import annealing_placer
from gdp_grappler.placers import default_placer
from gdp_grappler.placers.policy import learned
from gdp_grappler.placers.policy import move_policy
from gdp_grappler.placers.search import search_budget
from gdp_grappler.placers.search import staged_search
from gdp_grappler.placers.search.edges import edge_selection
from helpers import clusters
from helpers import graphs
from helpers import problems
from helpers import search_configs
from helpers import stopwatches


@pytest.fixture(autouse=True)
def _without_moves(monkeypatch):
  """`gdp_policy` proposes nothing."""
  monkeypatch.setattr(move_policy, 'before_search', lambda *_: None)


_SINGLE = ('single_device',)


def _problem(*, repeatable=True, **fields):
  """A problem of twelve ops without edges; its evaluator counts prices."""
  problem = problems.make(graphs.make_graph(num_ops=12),
                          clusters.make_cluster(2), np.ones(
                              (12, 3)), repeatable=repeatable, **fields)
  return dataclasses.replace(
      problem, evaluator=recording_evaluator.Recorder(problem.evaluator))


def _at_a_hundredth(**fields):
  """The number of prices, and seconds; each call of the clock takes 0.01 s."""
  ticks = itertools.count()
  problem = _problem(clock=lambda: next(ticks) / 100, **fields)
  default_placer.DefaultPlacer(anchors=_SINGLE, asks_network=False,
                               asks_policy=False).place(problem)
  return problem.evaluator.evaluations, next(ticks) / 100


def test_all_of_a_time_that_somebody_gave_is_used_and_no_more():
  priced, passed_s = _at_a_hundredth(time_budget_s=3., repeatable=False)
  # A batch that would end after the budget does not begin.
  assert 2.95 <= passed_s <= 3.1
  assert priced > 16 * 250


@pytest.mark.parametrize('budget_s, waits, by_count', [(None, False, 10),
                                                       (10., True, 5)])
def test_what_is_repeatable_ends_by_what_it_prices(monkeypatch, budget_s, waits,
                                                   by_count):
  search_configs.patch(monkeypatch, time={'ops_per_s': 50 * (12 + 1500)})
  priced, passed_s = _at_a_hundredth(time_budget_s=budget_s, repeatable=waits)
  # The starts are priced before the search.
  assert 50 * by_count - 16 < priced < 50 * by_count + 50
  assert passed_s < by_count / 2


@pytest.mark.parametrize('placer', ['gdp', 'local_search'])
def test_without_a_clock_a_budget_is_so_many_placements(monkeypatch, placer):
  # Runs with equal seeds and budgets once gave different plans.
  search_configs.patch(monkeypatch, time={'ops_per_s': 50 * (12 + 1500)})
  found, counts = [], []
  for tick_s in (0., 1e6):
    # No placer may read a clock other than that of the problem.
    ticks = itertools.count(step=tick_s)
    monkeypatch.setattr(time, 'monotonic', ticks.__next__)
    problem = _problem(repeatable=False, time_budget_s=10.,
                       clock=deadlines.still)
    placers = {
        'gdp': default_placer.DefaultPlacer(anchors=_SINGLE, asks_policy=False),
        'local_search': annealing_placer.AnnealingPlacer(starts=_SINGLE)
    }
    found.append(placers[placer].place(problem).devices.tolist())
    counts.append(problem.evaluator.evaluations)
  assert found[0] == found[1] and counts[0] == counts[1]
  assert 50 * 10 - 16 < counts[0] < 50 * 10 + 50


@pytest.mark.parametrize('fields',
                         [{'clock': deadlines.still}, {'repeatable': True}])
def test_what_a_process_has_loaded_does_not_count_where_runs_repeat(
    monkeypatch, fields):
  asked = []
  monkeypatch.setattr(learned, 'is_available', lambda: True)
  monkeypatch.setattr(learned, 'is_named', lambda policy: False)
  monkeypatch.setattr(learned, 'is_loaded',
                      lambda policy: asked.append(policy) or True)
  placer = default_placer.DefaultPlacer(anchors=_SINGLE)
  usual = _problem(repeatable=False)
  assert placer._asks_policy(usual, 10.) and asked
  asked.clear()
  assert not placer._asks_policy(dataclasses.replace(usual, **fields), 10.)
  assert not asked


def test_a_stopwatch_has_all_of_the_time_as_well():
  ticks = itertools.count()
  problem = problems.make(graphs.make_graph(num_ops=12),
                          clusters.make_cluster(2), np.ones(
                              (12, 3)), wrap=stopwatches.Stopwatch,
                          time_budget_s=2., clock=lambda: next(ticks) / 20)
  default_placer.DefaultPlacer(anchors=_SINGLE,
                               asks_policy=False).place(problem)
  assert 1.9 <= next(ticks) / 20 <= 2.5
  assert problem.evaluator.runs > 100


class _Asked:
  """A search with a clock of its own, and the computations of its edges.

  Attributes:
    placements: The placements whose edges were computed.
    begun_s: The time at which each computation of edges began.
    now: [seconds], the time. A computation of edges advances it.
  """

  def __init__(self, monkeypatch, takes=lambda count: 0.) -> None:
    """`takes` returns the seconds of the n-th computation, n from 1."""
    self.placements, self.begun_s, self.now = [], [], [0.]
    stock = edge_selection.with_edges

    def asked(problem, placement):
      self.placements.append(placement)
      self.begun_s.append(self.now[0])
      self.now[0] += takes(len(self.placements))
      key, placement = stock(problem, placement)
      # The first computation finds that the order pays. So the annealing by
      # priorities goes on.
      slower = 1 + (1 + len(self.placements)) % 2
      return (*key[:3], key[3] * slower), placement

    monkeypatch.setattr(edge_selection, 'with_edges', asked)

  def search(self, starts, seconds=None, evaluations=10**6, tick_s=.001,
             grace=0., seed=2):
    """Searches a random graph from random starts; counts computations."""

    def clock():
      self.now[0] += tick_s
      return self.now[0]

    cluster = presets.preset('2xP100')
    problem = problems.make(graphs.random_graph(seed, 40), cluster)
    problem = dataclasses.replace(problem,
                                  simulator=simulator.Simulator(cluster))
    rng = np.random.default_rng(0)
    rows = rng.integers(1, 3,
                        (starts, problem.graph.num_groups)).astype(np.int32)
    limit = search_budget.SearchBudget(evaluations, seconds, grace, clock)
    staged_search.search(problem, rows, rng, limit)
    return len(self.placements)


@pytest.mark.parametrize('each_s', [0., 2.])
def test_edges_are_looked_for_halfway_and_at_the_end(monkeypatch, each_s):
  """On large graphs, edges once took two of ten seconds."""
  asked = _Asked(monkeypatch, lambda _: each_s)
  assert 1 <= asked.search(4, 10., tick_s=.01) <= 2


def test_edges_of_one_may_take_much_longer_than_those_of_another(monkeypatch):
  """After a quick first computation, twelve others once exceeded the time."""
  asked = _Asked(monkeypatch, lambda count: .5 if count > 1 else .001)
  assert asked.search(14, 3., tick_s=.005) <= 2 and asked.now[0] < 4.


def test_time_is_kept_for_the_last_look(monkeypatch):
  ends, last = [], []
  for seed in range(6):
    with monkeypatch.context() as patch:
      asked = _Asked(patch, lambda _: .5)
      asked.search(4, 10., tick_s=.05, seed=seed)
    ends.append(asked.now[0])
    last.append(asked.begun_s[-1])
  # If the edges of the placement are known, the last computation takes no time.
  assert all(9.2 < end < 10.2 for end in ends) and 9.2 < max(last) < 9.7


@pytest.mark.parametrize('seed', range(12))
def test_time_is_overrun_by_one_look_at_most(monkeypatch, seed):
  """The edges of a second placement were once computed after the end."""
  assert _Asked(monkeypatch, lambda _: 100.).search(4, 10., tick_s=.02,
                                                    seed=seed) == 1


@pytest.mark.parametrize('each_s', [.6, 1.5])
def test_the_clock_does_not_count_before_its_grace(monkeypatch, each_s):
  with monkeypatch.context() as patch:
    alike = _Asked(patch).search(4, 10., 600, grace=.5)
  asked = _Asked(monkeypatch, lambda _: each_s)
  assert asked.search(4, 10., 600, grace=.5) == alike
