import dataclasses

import numpy as np
import pytest

from gdp_grappler import deadlines
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.placers.search import annealing
from gdp_grappler.placers.search import priority_annealing
from gdp_grappler.placers.search import search_budget
from gdp_grappler.placers.search import staged_search
from gdp_grappler.placers.search.edges import edge_selection
from helpers import clusters
from helpers import graphs
from helpers import problems
from helpers import slow_prices


def _search_with_edges(monkeypatch, priced, seconds=None,
                       clock=deadlines.still):
  """Searches, with given keys of placements with edges.

  Args:
    monkeypatch: Replaces the computation of edges.
    priced: Function of a placement and of the number of placements before it;
      returns the seconds of its key, and the placement with edges.
    seconds: Time limit of the search.
    clock: Clock of the search.

  Returns:
    The placements whose edges were computed, and the best one in order.
  """
  graph = graphs.random_graph(3, 120)
  cluster = presets.preset('2xP100')
  problem = problems.make(graph, cluster,
                          simulator=simulator.Simulator(cluster))
  asked = []

  def kept(problem, placement):
    key = problem.evaluator.price(graph, placement.devices[None]).keys()[0]
    step_s, found = priced(placement, len(asked))
    asked.append(placement)
    return (*key[:3], step_s), found

  monkeypatch.setattr(edge_selection, 'with_edges', kept)
  rng = np.random.default_rng(0)
  starts = rng.integers(1, 3, (1, graph.num_groups)).astype(np.int32)
  _, ordered = staged_search.search(
      problem, starts, rng,
      search_budget.SearchBudget(3000, seconds, clock=clock))
  return asked, ordered


@pytest.mark.parametrize('later_s, best', [(9., 0), (-1., -1)])
def test_the_best_with_edges_halfway_and_at_the_end_is_taken(
    monkeypatch, later_s, best):
  """The last placement was once taken, even if its ordered step was longer."""
  asked, ordered = _search_with_edges(
      monkeypatch, lambda placement, before: (later_s
                                              if before else 0., placement))
  assert len(asked) == 2
  assert (asked[0].devices != asked[1].devices).any()
  np.testing.assert_array_equal(ordered.devices, asked[best].devices)


def test_a_placement_whose_edges_do_not_pay_is_not_the_best_in_order(
    monkeypatch):
  """The result in order once had no order."""
  _, ordered = _search_with_edges(
      monkeypatch, lambda placement, before:
      (float(before), placement
       if before else dataclasses.replace(placement, priorities=None)))
  assert ordered.priorities is not None


@pytest.mark.parametrize('end_s, computed', [(8.5, 2), (9.5, 1)])
def test_edges_at_the_end_need_half_of_their_time(monkeypatch, end_s, computed):
  """After a late last batch, edges would be computed after the end."""
  anneal, now_s = staged_search.anneal, [0.]

  def priced(placement, before):
    del before
    now_s[0] += 2.
    return 0., placement

  def late(*arguments, **options):
    anneal(*arguments, **options)
    if now_s[0]:
      now_s[0] = end_s

  monkeypatch.setattr(staged_search, 'anneal', late)
  asked, _ = _search_with_edges(monkeypatch, priced, 10., lambda: now_s[0])
  assert len(asked) == computed


def test_edges_that_were_known_halfway_are_not_forgotten(monkeypatch):
  """The FIFO annealing may go on from a placement whose edges are known."""
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
    keys = [
        edge_selection.with_edges(problem, placement)[0]
        for placement in (known[0][1], *found)
    ]
    assert min(keys[1:]) <= keys[0]


def test_edges_of_a_placement_are_computed_once(monkeypatch):
  """The best placement halfway is often the best at the end."""
  cluster = presets.preset('2xP100')
  stock, asked = edge_selection.with_edges, []

  def watched(problem, placement):
    asked.append((placement.devices.tolist(), placement.priorities is None))
    return stock(problem, placement)

  monkeypatch.setattr(edge_selection, 'with_edges', watched)
  counts = set()
  for seed in range(6):
    asked.clear()
    graph = graphs.random_graph(seed, 40)
    problem = problems.make(graph, cluster,
                            simulator=simulator.Simulator(cluster))
    starts = np.ones((1, graph.num_groups), np.int32)
    staged_search.search(problem, starts, np.random.default_rng(seed),
                         search_budget.SearchBudget(800))
    counts.add(len(asked))
    assert all(asked.count(each) == 1 for each in asked)
  assert counts == {1, 2}


@pytest.mark.parametrize('ordered', [False, True])
def test_the_rest_belongs_to_the_order_that_is_better_with_edges(
    monkeypatch, ordered):
  cluster = presets.preset('2xP100')
  graph = graphs.random_graph(2, 40)
  problem = problems.make(graph, cluster,
                          simulator=simulator.Simulator(cluster))
  asked, first = edge_selection.with_edges, []
  anneal = staged_search.anneal

  def kept(problem, placement):
    is_ordered = placement.priorities is not None
    key, placement = asked(problem, placement)
    return (*key[:3], 0. if is_ordered == ordered else 9.), placement

  def watched(annealings, *arguments, **options):
    first.append(type(annealings[0]))
    return anneal(annealings, *arguments, **options)

  monkeypatch.setattr(edge_selection, 'with_edges', kept)
  monkeypatch.setattr(staged_search, 'anneal', watched)
  rng = np.random.default_rng(0)
  starts = rng.integers(1, 3, (1, graph.num_groups)).astype(np.int32)
  staged_search.search(problem, starts, rng, search_budget.SearchBudget(800))
  assert first[-1] is (priority_annealing.PriorityAnnealing
                       if ordered else annealing.Annealing)


def test_the_search_in_order_begins_with_varied_placements(monkeypatch):
  """Its only starts were once similar to the best FIFO placement."""
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
  """Returns lists of the starts of new annealings, and of restarts."""
  starts, restarts = [], []
  stock, restart = annealing.Annealing.__init__, annealing.Annealing.restart

  def watched(self, problem, rows, *rest):
    starts.append(rows.tolist())
    stock(self, problem, rows, *rest)

  def restarted(self, rows, *rest):
    restarts.append((self, rows.tolist()))
    restart(self, rows, *rest)

  monkeypatch.setattr(annealing.Annealing, '__init__', watched)
  monkeypatch.setattr(annealing.Annealing, 'restart', restarted)
  return starts, restarts


@pytest.mark.parametrize('orders', [False, True])
def test_short_annealings_begin_with_several_placements(monkeypatch, orders):
  """A slower start may lead to a shorter step: 65 ms, and not 82 ms."""
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
  """Only packed placements fit, and short annealings do not begin with them."""
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
  """On a large graph, the last batch once ended seconds late."""
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
  """Results of the coarse search were once priced after the end."""
  problem, prices = _slow_problem(each_s)
  rng = np.random.default_rng(0)
  starts = rng.integers(1, 3, (8, problem.graph.num_groups)).astype(np.int32)
  further = rng.integers(1, 3, (furthers, problem.graph.num_groups))
  staged_search.search(
      problem, starts, rng,
      search_budget.SearchBudget(10**6, limit_s, clock=prices.clock),
      further=[further.astype(np.int32)], several=starts[:several])
  # At the end, the search prices the best of each order, and edges.
  assert prices.now <= limit_s + 3 * each_s
