import dataclasses
import itertools
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
from helpers import recurrent
from helpers import search_configs
from helpers import unrolled


@pytest.fixture(autouse=True)
def _without_moves(monkeypatch):
  """`gdp_policy` proposes nothing."""
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


def _starts(problem):
  """int32 [1, G], all groups on the first GPU."""
  return np.ones((1, problem.graph.num_groups), np.int32)


def _search(problem, budget, models=staged_search.no_model, seed=0):
  return multilevel.search(multilevel.coarsened(problem), _starts(problem),
                           np.random.default_rng(seed), budget, models)


def _in_order_s(problem, row):
  search = priority_annealing.PriorityAnnealing(problem, row[None],
                                                np.random.default_rng(0))
  return search.best_key[-1]


@dataclasses.dataclass
class _Begun:
  """An annealing, and its arguments; `starts` is int32 [K, C]."""
  problem: placer_lib.Problem
  starts: np.ndarray
  model: object
  annealing: priority_annealing.PriorityAnnealing

  @property
  def num_groups(self):
    return self.problem.graph.num_groups

  def found(self, coarse):
    """int32 [G], the result of an annealing of this coarse problem."""
    first = self.problem.graph.first_ops
    return coarse.spread(self.annealing.best.devices[first][None])[0]


def _watched(monkeypatch):
  """Returns a list that gets the annealings in the order in which they begin.

  The configuration passes all results on.
  """
  search_configs.patch(monkeypatch, coarse={'own_work': .5, 'slowest': 1e9})
  begun = []
  stock = priority_annealing.PriorityAnnealing

  def watched(problem, starts, rng, model, moves):
    annealing = stock(problem, starts, rng, model, moves)
    begun.append(_Begun(problem, starts, model, annealing))
    return annealing

  monkeypatch.setattr(priority_annealing, 'PriorityAnnealing', watched)
  return begun


def test_finds_what_is_faster_in_order():
  problem = _problem()
  result = _search(problem, search_budget.SearchBudget(600))
  rows = result.rows
  assert rows.shape[1] == problem.graph.num_groups and result.progress == 1
  assert len(np.unique(rows, axis=0)) == len(rows)
  assert problem.allowed[np.arange(rows.shape[1]), rows].all()
  before_s = _in_order_s(problem, _starts(problem)[0])
  assert _in_order_s(problem, rows[0]) < .8 * before_s


def test_each_level_anneals_again_until_its_share_is_spent(monkeypatch):
  begun, problem = _watched(monkeypatch), _problem()
  coarse = multilevel.coarsened(problem)
  result = _search(problem, search_budget.SearchBudget(4000))
  layers = coarse.wholes().problem.graph.num_groups
  tiles = coarse.problem.graph.num_groups
  assert layers < tiles and result.progress == 1
  assert [each.num_groups for each in begun] == [layers, layers, layers, tiles]
  priced = [each.annealing.evaluations for each in begun]
  config = search_config.DEFAULT.coarse
  assert sum(priced[:3]) == pytest.approx(4000 * config.parts_until, abs=40)
  assert max(priced) == pytest.approx(4000 * config.round, abs=40)


def test_results_are_starts_of_the_next_level_and_all_are_passed_on(
    monkeypatch):
  begun, problem = _watched(monkeypatch), _problem()
  coarse = multilevel.coarsened(problem)
  result = _search(problem, search_budget.SearchBudget(2000))
  *wholes, tiles = begun
  layers = [each.found(coarse.wholes()) for each in wholes]
  assert {tuple(row) for row in coarse.projected(np.stack(layers))
         } <= {tuple(row) for row in tiles.starts}
  assert {tuple(row) for row in [*layers, tiles.found(coarse)]
         } == {tuple(row) for row in result.rows}


def test_the_network_scores_moves_of_tiles_only(monkeypatch):
  begun, problem = _watched(monkeypatch), _problem()
  model = mock.Mock()
  model.scores = lambda here, rows, kinds: np.zeros(len(rows))
  _search(problem, search_budget.SearchBudget(2000), lambda problem: model)
  *wholes, tiles = begun
  assert wholes and all(each.model is None for each in wholes)
  assert tiles.model is model


def test_selects_fast_placements_that_fit_the_best_first():
  rows = np.eye(5, dtype=np.int32)
  told = [((False, False, 0, 2.), rows[0]), ((False, False, 0, 1.05), rows[1]),
          ((False, False, 0, 1.), rows[2]), ((False, False, 0, 1.), rows[2]),
          ((True, False, 8, .5), rows[3]), ((False, False, 0, 1.09), rows[4])]
  np.testing.assert_array_equal(multilevel._select_starts(told), rows[[2, 1,
                                                                       4]])
  np.testing.assert_array_equal(multilevel._select_starts(told[4:5]), rows[[3]])


def test_layers_that_tear_what_is_fast_apart_do_not_move(monkeypatch):
  """A start by time steps took .2 s; by whole layers, the best took .3 s."""
  begun = _watched(monkeypatch)
  search_configs.patch(monkeypatch, coarse={'most_slowdown': 0.})
  # The layers of this graph have parts. The parts do not move, either.
  problem = _problem(recurrent.two_readers(12))
  coarse = multilevel.coarsened(problem)
  assert coarse.parted() is not None
  result = _search(problem, search_budget.SearchBudget(2000))
  assert len(begun) == 3 and result.progress == 1
  assert {each.num_groups for each in begun
         } == {coarse.problem.graph.num_groups}


@pytest.mark.parametrize('most_slowdown', [0., 1e9])
@pytest.mark.parametrize('limit', [(100, 0.), (0,)])
def test_without_time_there_is_a_start(monkeypatch, limit, most_slowdown):
  """Without any result, the placer once raised an IndexError."""
  begun = _watched(monkeypatch)
  search_configs.patch(monkeypatch, coarse={'most_slowdown': most_slowdown})
  result = _search(_problem(), search_budget.SearchBudget(*limit))
  assert (result.rows == 1).all() and len(result.rows) == result.progress == 1
  assert len(begun) == 1


def test_what_may_not_move_takes_no_time():
  """Such a problem was once searched again and again to the end."""
  problem = _problem()
  pinned = problem.graph.replace(pins=['GPU:0'] * problem.graph.num_ops)
  now = itertools.count(0, .01)
  limit = search_budget.SearchBudget(10**9, 100., clock=lambda: next(now))
  result = _search(_problem(pinned), limit)
  assert (result.rows == 1).all() and result.progress < .1


def test_the_clock_ends_each_level_and_the_search(monkeypatch):
  begun, problem = _watched(monkeypatch), _problem()
  # The search reads the clock about once a batch.
  now = itertools.count(0, .01)
  limit = search_budget.SearchBudget(10**9, 5., clock=lambda: next(now))
  result = _search(problem, limit)
  assert result.progress == 1 and next(now) < 5.5
  tiles = begun[-1].num_groups
  wholes = sum(
      each.annealing.evaluations for each in begun if each.num_groups < tiles)
  share = wholes / sum(each.annealing.evaluations for each in begun)
  until = search_config.DEFAULT.coarse.parts_until
  assert share == pytest.approx(until, abs=.05)


def test_says_the_same_again_and_prices_no_more_than_it_may(monkeypatch):
  problem, found, asked = _problem(), [], []
  stock = coarse_problem._Simulator._prices

  def counting(self, graph, devices, *rest):
    asked.append(len(devices))
    return stock(self, graph, devices, *rest)

  monkeypatch.setattr(coarse_problem._Simulator, '_prices', counting)
  for _ in range(2):
    asked.clear()
    found.append(
        _search(problem, search_budget.SearchBudget(96), seed=3).rows.tolist())
    # More prices are those of the starts and of the priorities of each level.
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
  """The search once priced tiles on devices that are not legal for them."""
  begun, step = _watched(monkeypatch), unrolled.make(3, 8)
  allowed = np.ones((step.graph.num_ops, 2), bool)
  allowed[step.layer == 1, 1] = False
  problem = _problem(step.graph.replace(allowed_types=allowed))
  may = multilevel.coarsened(problem).problem.allowed
  assert not may.all()
  _search(problem, search_budget.SearchBudget(300))
  rows = begun[-1].annealing.best.devices[begun[-1].problem.graph.first_ops]
  assert may[np.arange(len(rows)), rows].all() and rows.any()


def _asked(monkeypatch, budget_s):
  """The problem, and further starts that the default placer's search gets."""
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
