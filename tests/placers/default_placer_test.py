"""The default placer: anchors, the policy and the search."""

import dataclasses
import itertools

import numpy as np
import pytest

from gdp_grappler import deadlines
from gdp_grappler import errors
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation import recording_evaluator
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.placers import best_of
from gdp_grappler.placers import default_placer
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import registry
from gdp_grappler.placers.policy import learned
from gdp_grappler.placers.policy import move_policy
from gdp_grappler.placers.search import priced_placements
from gdp_grappler.placers.search import search_budget
from gdp_grappler.placers.search import search_config
from gdp_grappler.placers.search import staged_search
from gdp_grappler.placers.search.moves import move_scoring
from gdp_grappler.placers.search.moves import shipped_moves
from helpers import clusters
from helpers import graphs
from helpers import problems
from helpers import search_configs
from helpers import watched_anchors


@pytest.fixture(autouse=True)
def _without_moves(monkeypatch):
  """`gdp_policy` proposes nothing."""
  monkeypatch.setattr(move_policy, 'before_search', lambda *_: None)


_SINGLE = ('single_device',)


class _Policy:
  """Proposes one placement; counts loads, and loads in the background."""

  loaded = ahead = 0

  def __init__(self, policy=None):
    del policy
    _Policy.loaded += 1

  def candidates(self, problem):
    return np.arange(problem.graph.num_ops)[None] % 2 + 1


def _load_ahead(policy):
  del policy
  _Policy.ahead += 1


@pytest.fixture(autouse=True)
def policy(monkeypatch):
  monkeypatch.setattr(learned, 'LearnedPlacer', _Policy)
  monkeypatch.setattr(learned, 'load_ahead', _load_ahead)
  monkeypatch.setattr(learned, 'is_available', lambda: True)
  monkeypatch.setattr(learned, 'is_named', lambda policy: True)
  monkeypatch.setattr(learned, 'is_loaded', lambda policy: False)
  search_configs.patch(monkeypatch, time={'ops_per_s': 100_000})
  _Policy.loaded = _Policy.ahead = 0
  return _Policy


def _problem(seconds, num_ops=12, *, repeatable=True, **fields):
  """A problem of ops without edges; its evaluator counts prices.

  The problem is repeatable, so that a number of prices ends a search.
  """
  problem = problems.make(graphs.make_graph(num_ops=num_ops),
                          clusters.make_cluster(2),
                          np.full((num_ops, 3), seconds), repeatable=repeatable,
                          **fields)
  return dataclasses.replace(
      problem, evaluator=recording_evaluator.Recorder(problem.evaluator))


def test_it_is_a_proposer_and_a_chooser():
  placer = default_placer.DefaultPlacer()
  assert isinstance(placer, placer_lib.Proposer)
  assert isinstance(placer, placer_lib.Chooser) and placer.winner is None


def test_independent_ops_are_divided():
  problem = _problem(1.)
  placer = default_placer.DefaultPlacer(anchors=_SINGLE)
  placement = placer.place(problem)
  assert problems.seconds_of(problem, placement) == pytest.approx(4)
  assert placer.winner


def test_what_can_gain_little_waits_for_no_policy_and_no_search(policy):
  problem = _problem(1e-7)
  default_placer.DefaultPlacer(anchors=_SINGLE).place(problem)
  assert policy.loaded == policy.ahead == 0
  few = problem.evaluator.evaluations
  slow = _problem(1e-1)
  default_placer.DefaultPlacer(anchors=_SINGLE).place(slow)
  assert policy.loaded == policy.ahead == 1
  assert slow.evaluator.evaluations > 10 * few


def test_at_the_bound_there_is_nothing_to_search_for(policy):
  # A chain: no placement beats one device.
  problem = problems.make(graphs.chain(12), clusters.make_cluster(2), 1.)
  placer = default_placer.DefaultPlacer(anchors=_SINGLE)
  assert len(set(placer.place(problem).devices)) == 1
  assert policy.loaded == policy.ahead == 0
  assert placer.winner == default_placer.ONE_DEVICE


def test_what_fits_nowhere_is_worth_a_search(policy):
  graph = graphs.make_graph(num_ops=30, param_bytes=100)
  problem = problems.make(graph, clusters.make_cluster(2, memory_bytes=1100),
                          [[9e-6, 1e-6, 1e-6]] * 30)
  placement = default_placer.DefaultPlacer(anchors=_SINGLE).place(problem)
  assert policy.loaded == 1
  assert problem.evaluator.evaluate(graph, placement).valid


@pytest.mark.parametrize('seed', range(3))
def test_repeatable_legal_and_none_proposed_twice(seed):

  def proposals():
    # The clock stands still. A real clock would end the search on a busy
    # machine.
    return default_placer.DefaultPlacer(anchors=_SINGLE).proposals(
        problems.make(graphs.random_graph(seed, 60), seed=seed,
                      clock=watched_anchors.Clock()))

  first = [p.devices.tolist() for p in proposals()]
  assert first == [p.devices.tolist() for p in proposals()]
  assert len(set(map(tuple, first))) == len(first)
  graph = graphs.random_graph(seed, 60)
  assert not any(p.violations(graph) for p in proposals())


@pytest.mark.parametrize('wanted', [False, True])
def test_what_is_fast_in_order_is_proposed_where_edges_may_be_added(wanted):
  cluster = presets.preset('2xP100')
  problem = problems.make(graphs.random_graph(3, 80), cluster, 1.,
                          simulator=simulator.Simulator(cluster),
                          may_add_edges=wanted, clock=watched_anchors.Clock())
  found = default_placer.DefaultPlacer(anchors=_SINGLE).proposals(problem)
  assert any(p.priorities is not None for p in found) == wanted
  assert not any(p.violations(problem.graph) for p in found)


def test_the_first_proposal_is_the_best():
  problem = problems.make(graphs.random_graph(1, 80))
  found = default_placer.DefaultPlacer(anchors=('single_device',
                                                'm_etf')).proposals(problem)
  prices = problem.evaluator.price(problem.graph,
                                   np.stack([p.devices for p in found]))
  assert prices.ranking()[0] == 0


def test_a_time_budget_stops_the_search():
  ticks = iter(range(10_000))
  problem = _problem(1., time_budget_s=8., repeatable=False,
                     clock=lambda: next(ticks) / 10)
  default_placer.DefaultPlacer(anchors=_SINGLE).place(problem)
  assert 8 < next(ticks) / 10 < 9.5


def test_the_policy_is_loaded_while_anchors_are_asked(monkeypatch):
  asked = watched_anchors.watch(monkeypatch, watched_anchors.Clock(), 0,
                                lambda: _Policy.ahead)
  default_placer.DefaultPlacer(anchors=_SINGLE).place(_problem(1.))
  assert ('single_device', 1) in asked


def test_no_anchor_and_no_policy_is_asked_when_the_time_is_over(
    monkeypatch, policy):
  clock = watched_anchors.Clock()
  asked = watched_anchors.watch(monkeypatch, clock, 5)
  anchors = 'single_device', 'm_etf', 'm_sct', 'round_robin'
  placer = default_placer.DefaultPlacer(anchors=anchors)
  problem = _problem(1., time_budget_s=4., clock=clock)
  placement = placer.place(problem)
  assert [name for name, _ in asked] == ['single_device']
  assert policy.loaded == 0
  assert problems.seconds_of(problem, placement) <= 12
  asked.clear()
  placer.place(_problem(1., time_budget_s=30., clock=clock))
  # The last anchor is too late. The policy is not.
  assert [name for name, _ in asked] == [*anchors[:3]]
  assert policy.loaded == 1


@pytest.mark.parametrize('budget_s, share', [(40., .35), (.01, 1.)])
def test_no_anchor_takes_the_time_of_the_others(monkeypatch, budget_s, share):
  """On RNNLM-4, METIS once took all of the time.

  A search of 3 s then found a slower step than a search of 1 s.
  """
  budgets = watched_anchors.watch_seconds(monkeypatch)
  default_placer.DefaultPlacer(anchors=('heft', 'single_device', 'round_robin'),
                               asks_policy=False).place(
                                   _problem(1., time_budget_s=budget_s,
                                            clock=watched_anchors.Clock(),
                                            repeatable=False))
  # A placer may take half of the time that is left. The clock stands still, so
  # no placer takes any time.
  all_s = share * budget_s
  assert list(budgets.items()) == [('single_device', pytest.approx(all_s / 2)),
                                   ('heft', pytest.approx(all_s / 2)),
                                   ('round_robin', pytest.approx(all_s))]


@pytest.mark.parametrize('budget_s', [None, 1.])
def test_one_anchor_is_asked_if_the_time_is_over_at_once(
    monkeypatch, policy, budget_s):
  # As on a busy machine, the prices of single devices take all of the time.
  ticks = itertools.count(step=100.)
  asked = watched_anchors.watch(monkeypatch, watched_anchors.Clock(), 0)
  problem = _problem(1., time_budget_s=budget_s, clock=lambda: next(ticks))
  problem = dataclasses.replace(
      problem, expert_devices=np.zeros(problem.graph.num_ops, int))
  default_placer.DefaultPlacer().place(problem)
  # The expert's placement is one device, which is known. `hierarchical` has
  # nothing to propose for one host, and `structured` nothing without structure.
  assert [name for name, _ in asked
         ] == ['human_expert', 'hierarchical', 'structured', 'metis']


def test_a_quick_schedule_is_a_start_in_spite_of_little_time(policy):
  """A wide graph of 49,060 ops once stayed on one device: 4.3 s, not 1.6 s."""
  ticks = itertools.count(step=100.)
  problem = _problem(1., time_budget_s=1., clock=lambda: next(ticks))
  placer = default_placer.DefaultPlacer(anchors=('single_device', 'm_etf'))
  placement = placer.place(problem)
  assert placer.winner == 'm_etf_published'
  assert problems.seconds_of(problem, placement) == 6


@pytest.mark.parametrize('ops, budget_s, asked', [(12, 4e-5, True),
                                                  (12, 3e-5, False)])
def test_a_quick_schedule_takes_no_longer_than_the_whole_search(
    policy, ops, budget_s, asked):
  ticks = itertools.count(step=100.)
  problem = _problem(1., ops, time_budget_s=budget_s, clock=lambda: next(ticks))
  placer = default_placer.DefaultPlacer(anchors=_SINGLE)
  placer.place(problem)
  assert (placer.winner == 'm_etf_published') == asked


def test_waiting_for_the_policy_takes_nothing_of_the_budget(monkeypatch):
  watch = deadlines.Stopwatch(clock := watched_anchors.Clock())
  monkeypatch.setattr(deadlines, 'LOADING', watch)

  class Slow(_Policy):

    def __init__(self, policy=None):
      super().__init__(policy)
      with watch.running():
        clock.now += 100

  monkeypatch.setattr(learned, 'LearnedPlacer', Slow)
  allowed = []
  stock = search_budget.SearchBudget
  monkeypatch.setattr(
      search_budget, 'SearchBudget',
      lambda evaluations, seconds, *rest: allowed.append(seconds) or stock(
          evaluations, seconds, *rest))
  default_placer.DefaultPlacer(anchors=_SINGLE).place(
      _problem(1., time_budget_s=8., clock=clock))
  assert allowed == [8]


def test_a_policy_that_is_named_has_to_be_one(tmp_path):
  with pytest.raises(errors.PolicyMismatchError, match='is not a policy'):
    default_placer.DefaultPlacer(str(tmp_path))


def test_without_a_policy_the_anchors_are_enough(monkeypatch, policy):
  monkeypatch.setattr(learned, 'is_available', lambda: False)
  problem = _problem(1.)
  placement = default_placer.DefaultPlacer(anchors=_SINGLE).place(problem)
  assert problems.seconds_of(problem, placement) == pytest.approx(4)
  assert policy.loaded == 0


@pytest.mark.parametrize('loaded, budget_s, asked', [
    (False, 10., 0),
    (True, 10., 0),
    (False, 300., 1),
])
def test_nobody_waits_for_a_policy_that_nobody_named(monkeypatch, policy,
                                                     loaded, budget_s, asked):
  # Loading once took two seconds more than a budget of ten, without a gain. A
  # policy that is loaded does not count, because these problems are repeatable.
  monkeypatch.setattr(learned, 'is_named', lambda policy: False)
  monkeypatch.setattr(learned, 'is_loaded', lambda policy: loaded)
  search_configs.patch(monkeypatch, time={'ops_per_s': 5_000})
  default_placer.DefaultPlacer(anchors=_SINGLE).place(
      _problem(1., time_budget_s=budget_s))
  assert policy.loaded == policy.ahead == asked


@pytest.mark.parametrize('asks', [False, True])
def test_the_network_chooses_what_is_priced_unless_it_is_not_to(
    monkeypatch, asks):
  networks = []

  class Scorer(move_scoring.MoveScorer):

    def scores(self, incumbent, candidates, kinds):
      networks.append(self._network)
      return super().scores(incumbent, candidates, kinds)

  monkeypatch.setattr(move_scoring, 'MoveScorer', Scorer)
  problem = _problem(1.)
  placement = default_placer.DefaultPlacer(anchors=_SINGLE,
                                           asks_network=asks).place(problem)
  assert problems.seconds_of(problem, placement) == pytest.approx(4)
  assert set(networks) == ({shipped_moves.network()} if asks else set())


@pytest.mark.parametrize('name',
                         ['gdp_held_out', 'gdp_no_policy', 'gdp_no_network'])
def test_what_is_held_out_asks_no_policy(policy, name):
  problem = _problem(1.)
  placement = registry.create(name).place(problem)
  assert problems.seconds_of(problem, placement) == pytest.approx(4)
  assert policy.loaded == policy.ahead == 0


@pytest.mark.parametrize('orders_pay', [False, True])
def test_the_search_may_begin_with_any_proposal_of_a_placer(
    monkeypatch, orders_pay):
  # A start that is slow first in, first out may be the fastest in order.
  given = []
  stock = staged_search.search

  def searched(problem, starts, *rest, varied, **fields):
    given.append((starts.tolist(), varied))
    return stock(problem, starts, *rest, varied=varied, **fields)

  cluster = presets.preset('2xP100')
  problem = problems.make(graphs.make_graph(num_ops=12), cluster,
                          np.full((12, 3),
                                  1.), simulator=simulator.Simulator(cluster),
                          may_add_edges=orders_pay, repeatable=True)
  halves = [0] * 4 + [1] * 4 + [2] * 4, [2] * 4 + [1] * 4 + [0] * 4
  proposals = tuple(
      placement_lib.Placement(np.array(row, np.int32), problem.cluster)
      for row in halves)
  monkeypatch.setattr(staged_search, 'search', searched)
  monkeypatch.setattr(
      best_of, 'propose_each', lambda problem, names, deadline, on_proposals, **
      _: [on_proposals(name, proposals) for name in names])
  default_placer.DefaultPlacer(anchors=_SINGLE,
                               asks_policy=False).place(problem)
  (starts, varied), = given
  assert starts[:2] == list(map(list, halves))
  assert len(starts) == len(set(map(tuple, starts)))
  assert (varied is not None) == problem.orders_pay == orders_pay
  if varied is None:
    return
  config = search_config.DEFAULT.priorities
  for index, row in enumerate(varied):
    for better in varied[:index]:
      assert np.mean(row != better) >= config.different
  assert varied[0].tolist() == starts[0] and len(varied) <= config.starts


def test_what_the_policy_of_moves_finds_is_told_of(monkeypatch):

  def best(problem, *_):
    found = priced_placements.PricedPlacements(problem.graph, problem.evaluator)
    found.add([np.repeat([1, 2], 6)])
    return found

  monkeypatch.setattr(move_policy, 'before_search', best)
  placer = default_placer.DefaultPlacer(anchors=_SINGLE, asks_policy=False)
  told = [
      p.devices.tolist()
      for p in placer.proposals(_problem(1., clock=lambda: 0.))
  ]
  assert np.repeat([1, 2], 6).tolist() in told
