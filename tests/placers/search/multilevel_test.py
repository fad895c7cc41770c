import dataclasses
from unittest import mock

import numpy as np
import pytest

from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.placers import default_placer
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.policy import move_policy
from gdp_grappler.placers.search import coarse_problem
from gdp_grappler.placers.search import multilevel
from gdp_grappler.placers.search import priority_annealing
from gdp_grappler.placers.search import search_budget
from gdp_grappler.placers.search import search_config
from gdp_grappler.placers.search import staged_search
from helpers import graphs
from helpers import search_configs
from helpers import unrolled


@pytest.fixture(autouse=True)
def _without_moves(monkeypatch):
  """What is asked of others, where the policy of moves has nothing to say."""
  monkeypatch.setattr(move_policy, 'before_search', lambda *_: None)


@pytest.fixture(autouse=True)
def _however_small(monkeypatch):
  search_configs.patch(
      monkeypatch, coarse={'fewest_nodes': 1, 'most_nodes': 1, 'fewest_ops': 1})


def _problem(graph=None):
  cluster = presets.preset('2xP100')
  prices = simulator.Simulator(cluster, threads=1)
  return placer_lib.Problem(graph or unrolled.make(3, 8).graph, cluster, prices,
                            simulator=prices)


def _in_order_s(problem, row):
  search = priority_annealing.PriorityAnnealing(problem, row[None],
                                                np.random.default_rng(0))
  return search.best_key[-1]


def test_finds_what_is_faster_in_order():
  problem = _problem()
  coarse = multilevel.coarsened(problem)
  starts = np.ones((1, problem.graph.num_groups), np.int32)
  result = multilevel.search(coarse, starts, np.random.default_rng(0),
                             search_budget.SearchBudget(600),
                             lambda problem: None)
  rows = result.rows
  assert rows.shape[1] == problem.graph.num_groups and 0 < result.progress <= 1
  assert len(np.unique(rows, axis=0)) == len(rows)
  assert problem.allowed[np.arange(rows.shape[1]), rows].all()
  assert _in_order_s(problem, rows[0]) < .8 * _in_order_s(problem, starts[0])


def test_layers_move_before_their_time_steps(monkeypatch):
  search_configs.patch(monkeypatch, coarse={'own_work': .5})
  problem, groups = _problem(), []
  stock = priority_annealing.PriorityAnnealing

  def watched(problem, *arguments, **fields):
    groups.append(problem.graph.num_groups)
    return stock(problem, *arguments, **fields)

  monkeypatch.setattr(priority_annealing, 'PriorityAnnealing', watched)
  coarse = multilevel.coarsened(problem)
  starts = np.ones((1, problem.graph.num_groups), np.int32)
  limit = search_budget.SearchBudget(20_000)
  result = multilevel.search(coarse, starts, np.random.default_rng(0), limit,
                             lambda problem: None)
  # The first one says what the best start takes in tiles.
  start, *wholes, tiles = groups
  assert {*wholes} == {coarse.wholes().problem.graph.num_groups}
  assert start == tiles == coarse.problem.graph.num_groups > wholes[0]
  # Two found the same, and what is left goes to the search of the graph.
  assert 2 <= len(wholes) < 10 and result.progress < .9


def _converged(*keys):
  repeated = object.__new__(multilevel._RepeatedAnnealing)
  repeated.annealings = [
      mock.Mock(best_key=key, evaluations=900, can_move=True) for key in keys
  ]
  return repeated.has_converged


def test_annealings_that_agree_have_converged():
  fits = False, False, 0
  assert not _converged((*fits, 1.))
  assert not _converged((*fits, 1.), (*fits, 1.1))
  assert _converged((*fits, 1.), (*fits, 1.1), (*fits, 1.0001))
  assert _converged((*fits, 0.), (*fits, 0.))
  # Placements that overflow do not count, however fast they are.
  assert not _converged((True, False, 9, 1.), (True, False, 4, 1.))
  assert not _converged((True, False, 9, 1.), (*fits, 1.))
  assert _converged((True, False, 9, .5), (*fits, 1.), (*fits, 1.))


def test_annealings_of_few_placements_have_not_converged():
  repeated = object.__new__(multilevel._RepeatedAnnealing)
  repeated.annealings = [
      mock.Mock(best_key=(0, 0, 0, 1.), evaluations=count, can_move=True)
      for count in (900, 100)
  ]
  assert not repeated.has_converged


def test_selects_fast_placements_that_fit_the_best_first():
  rows = np.eye(5, dtype=np.int32)
  told = [((False, False, 0, 2.), rows[0]), ((False, False, 0, 1.05), rows[1]),
          ((False, False, 0, 1.), rows[2]), ((False, False, 0, 1.), rows[2]),
          ((True, False, 8, .5), rows[3]), ((False, False, 0, 1.09), rows[4])]
  np.testing.assert_array_equal(multilevel._select_starts(told), rows[[2, 1,
                                                                       4]])
  np.testing.assert_array_equal(multilevel._select_starts(told[4:5]), rows[[3]])


def _seen(monkeypatch, limit, models=lambda problem: None):
  """What each search began with, and what was told, as if all were as fast."""
  search_configs.patch(monkeypatch, coarse={'own_work': .5})
  search_configs.patch(monkeypatch, coarse={'slowest': 1e9})
  problem, begun = _problem(), []
  stock = priority_annealing.PriorityAnnealing

  def watched(problem, starts, rng, model=None, moves=None):
    search = stock(problem, starts, rng, model, moves)
    begun.append((problem, starts, model, search))
    return search

  monkeypatch.setattr(priority_annealing, 'PriorityAnnealing', watched)
  coarse = multilevel.coarsened(problem)
  starts = np.ones((1, problem.graph.num_groups), np.int32)
  result = multilevel.search(coarse, starts, np.random.default_rng(0), limit,
                             models)
  return coarse, begun, result


def test_the_last_annealing_begins_with_layers_and_all_are_passed_on(
    monkeypatch):
  model = mock.Mock()
  model.scores = lambda here, rows, kinds: np.zeros(len(rows))
  coarse, begun, result = _seen(monkeypatch, search_budget.SearchBudget(2000),
                                lambda problem: model)
  _, *wholes, (problem, starts, asked, last) = begun
  assert problem is coarse.problem and asked is model
  told = {row.tobytes() for row in result.rows}
  first = problem.graph.first_ops
  assert coarse.spread(last.best.devices[first][None]).tobytes() in told
  assert all(none is None for _, _, none, _ in wholes)
  found = {
      coarse.wholes().spread(
          search.best.devices[small.graph.first_ops][None]).tobytes()
      for small, _, _, search in wholes
  }
  assert found <= told
  begins = {row.tobytes() for row in coarse.spread(starts)}
  assert found & begins


def _groups_of(begun):
  return [problem.graph.num_groups for problem, *_ in begun]


def test_layers_that_tear_what_is_fast_apart_do_not_move(monkeypatch):
  """Time steps were a start of .2 s, on whose layers .3 s were the best."""
  search_configs.patch(monkeypatch, coarse={'most_slowdown': 0.})
  coarse, begun, result = _seen(monkeypatch, search_budget.SearchBudget(2000))
  *_, first, second, third = _groups_of(begun)
  assert first == second == third == coarse.problem.graph.num_groups
  assert result.progress == 1 and len(result.rows) >= 2


@pytest.mark.parametrize('faster, is_short', [(0., True), (1e9, False)])
def test_tiles_move_for_a_short_time_where_layers_are_far_ahead(
    monkeypatch, faster, is_short):
  search_configs.patch(monkeypatch, coarse={'faster': faster})
  coarse, begun, result = _seen(monkeypatch, search_budget.SearchBudget(4000))
  *_, search = begun[-1]
  assert search.evaluations < 450 if is_short else search.evaluations > 600
  assert result.progress < .95 if is_short else result.progress == 1


@pytest.mark.parametrize('limit', [(100, 0.), (0,)])
def test_without_time_or_layers_there_is_a_start(monkeypatch, limit):
  """It told of nothing, and the placer ended with an IndexError."""
  search_configs.patch(monkeypatch, coarse={'most_slowdown': 0.})
  _, _, result = _seen(monkeypatch, search_budget.SearchBudget(*limit))
  assert (result.rows == 1).all() and len(result.rows) == result.progress == 1


def test_tiles_have_all_the_time_where_layers_fit_nowhere(monkeypatch):
  problem = _problem(unrolled.make(3, 8).graph)
  coarse = multilevel.coarsened(problem)
  starts = np.ones((1, problem.graph.num_groups), np.int32)
  told, stock = [], multilevel._RepeatedAnnealing.ranked

  def overflowing(self):
    result = [((True, False, 7, key[-1]), row) for key, row in stock(self)]
    told.append(result)
    return result

  monkeypatch.setattr(multilevel._RepeatedAnnealing, 'ranked', overflowing)
  monkeypatch.setattr(
      multilevel, '_is_slower', lambda key, other, factor=1.: factor ==
      search_config.DEFAULT.coarse.faster)
  result = multilevel.search(coarse, starts, np.random.default_rng(0),
                             search_budget.SearchBudget(900),
                             lambda problem: None)
  assert told and result.progress == 1


def test_layers_stop_where_they_are_behind_a_start(monkeypatch):
  fast = mock.PropertyMock(side_effect=[(False, False, 0,
                                         1e-9), (False, False, 0, 1.)])
  search_configs.patch(monkeypatch, coarse={'most_slowdown': 1e99})
  monkeypatch.setattr(multilevel._RepeatedAnnealing, 'start_key', fast)
  coarse, begun, result = _seen(monkeypatch, search_budget.SearchBudget(20_000))
  whole, *tiles = _groups_of(begun)
  assert whole == coarse.wholes().problem.graph.num_groups
  assert len(tiles) > 1 and {*tiles} == {coarse.problem.graph.num_groups}
  assert result.progress == 1


def test_what_may_not_move_takes_no_time():
  """It was searched again and again until the time was over."""
  problem = _problem()
  pinned = problem.graph.replace(pins=['GPU:0'] * problem.graph.num_ops)
  problem = _problem(pinned)
  coarse = multilevel.coarsened(problem)
  starts = np.ones((1, problem.graph.num_groups), np.int32)
  now = [0.]

  def clock():
    now[0] += .01
    return now[0]

  limit = search_budget.SearchBudget(10**9, 100., clock=clock)
  result = multilevel.search(coarse, starts, np.random.default_rng(0), limit,
                             lambda problem: None)
  assert (result.rows == 1).all() and result.progress < .1


def test_says_the_same_again_and_prices_no_more_than_it_may(monkeypatch):
  problem = _problem()
  starts = np.ones((1, problem.graph.num_groups), np.int32)
  found, asked = [], []
  stock = coarse_problem._Simulator._prices

  def counting(self, graph, devices, *rest):
    asked.append(len(devices))
    return stock(self, graph, devices, *rest)

  monkeypatch.setattr(coarse_problem._Simulator, '_prices', counting)
  for _ in range(2):
    coarse = multilevel.coarsened(problem)
    asked.clear()
    found.append(
        multilevel.search(coarse, starts, np.random.default_rng(3),
                          search_budget.SearchBudget(96),
                          lambda problem: None).rows.tolist())
    # Beside it the starts, for each search, and its priorities.
    assert 48 <= sum(asked) <= 96 + 40
  assert found[0] == found[1]


def test_small_graphs_and_those_without_order_are_left_as_they_are(monkeypatch):
  assert multilevel.coarsened(_problem(graphs.chain(9))) is None
  problem = _problem()
  without = dataclasses.replace(problem, may_add_edges=False)
  assert multilevel.coarsened(without) is None
  search_configs.patch(monkeypatch,
                       coarse={'fewest_ops': problem.graph.num_ops + 1})
  assert multilevel.coarsened(problem) is None


def test_tiles_stay_where_they_may_be(monkeypatch):
  """The search did not know, and priced what could not be."""
  step = unrolled.make(3, 8)
  allowed = np.ones((step.graph.num_ops, 2), bool)
  allowed[step.layer == 1, 1] = False
  problem = _problem(step.graph.replace(allowed_types=allowed))
  coarse = multilevel.coarsened(problem)
  may, seen = coarse.problem.allowed, []
  assert not may.all()
  stock = coarse.spread
  monkeypatch.setattr(coarse, 'spread', lambda rows:
                      (seen.append(rows), stock(rows))[1])
  starts = np.zeros((1, problem.graph.num_groups), np.int32)
  multilevel.search(coarse, starts, np.random.default_rng(0),
                    search_budget.SearchBudget(300), lambda problem: None)
  rows, = seen
  assert may[np.arange(rows.shape[1]), rows].all() and rows.any()


def test_without_time_one_search_looks_at_the_starts(monkeypatch):
  problem, made = _problem(), []
  stock = priority_annealing.PriorityAnnealing
  monkeypatch.setattr(
      priority_annealing, 'PriorityAnnealing', lambda *arguments, **fields:
      (made.append(1), stock(*arguments, **fields))[1])
  coarse = multilevel.coarsened(problem)
  starts = np.ones((1, problem.graph.num_groups), np.int32)
  result = multilevel.search(coarse, starts, np.random.default_rng(0),
                             search_budget.SearchBudget(100, 0.),
                             lambda problem: None)
  assert len(made) == 2 and len(result.rows) == result.progress == 1


def _asked(monkeypatch, budget_s):
  """What the default placer's search in order begins with, too."""
  seen = []
  stock = staged_search.search

  def watched(*args, further, **fields):
    seen.append(further)
    return stock(*args, further=further, **fields)

  monkeypatch.setattr(staged_search, 'search', watched)
  search_configs.patch(monkeypatch, time={'ops_per_s': 20_000, 'steps': 10**9})
  problem = dataclasses.replace(_problem(), time_budget_s=budget_s,
                                repeatable=True, clock=lambda: 0.)
  placer = default_placer.DefaultPlacer(anchors=('structured',),
                                        asks_policy=False)
  placements = placer.proposals(problem)
  assert all(not p.violations(problem.graph) for p in placements)
  return problem, seen[0]


def test_the_default_placer_begins_with_it_where_it_has_the_time(monkeypatch):
  problem, (rows,) = _asked(monkeypatch, 10.)
  assert len(rows) and rows.shape[1] == problem.graph.num_groups
  assert not _asked(monkeypatch, 1.)[1]


def test_time_that_the_small_graph_did_not_take_is_the_large_ones(monkeypatch):
  counts = []
  for progress in (1., .5, 0.):
    searched, coarse = staged_search.search, multilevel.search

    def told(*args, progress=progress, coarse=coarse):
      return multilevel.CoarseResult(coarse(*args).rows, progress)

    def watched(problem, starts, rng, limit, *args, searched=searched,
                **fields):
      counts.append(limit.evaluations)
      return searched(problem, starts, rng, limit, *args, **fields)

    with monkeypatch.context() as patch:
      patch.setattr(multilevel, 'search', told)
      patch.setattr(staged_search, 'search', watched)
      _asked(patch, 14.)
  least, some, most = counts
  assert least < some < most
  assert .4 < least / most < .8
