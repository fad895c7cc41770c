import numpy as np
import pytest

from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.search import multilevel
from gdp_grappler.placers.search import priority_annealing
from gdp_grappler.placers.search import search_budget
from helpers import recurrent
from helpers import search_configs
from helpers import unrolled


@pytest.fixture(autouse=True)
def _however_small(monkeypatch):
  search_configs.patch(
      monkeypatch, coarse={'fewest_nodes': 1, 'most_nodes': 1, 'fewest_ops': 1})


def _problem(graph):
  prices = simulator.Simulator(presets.preset('2xP100'), threads=1)
  return placer_lib.Problem(graph, prices.cluster, prices, simulator=prices)


def _in_order_s(problem, row):
  search = priority_annealing.PriorityAnnealing(problem, row[None],
                                                np.random.default_rng(0))
  return search.best_key[-1]


def _watched(monkeypatch):
  """Searches, in turn, with the number of their groups."""
  search_configs.patch(monkeypatch, coarse={'own_work': .5})
  begun = []
  stock = priority_annealing.PriorityAnnealing

  def watched(problem, *arguments, **fields):
    begun.append((problem.graph.num_groups, stock(problem, *arguments,
                                                  **fields)))
    return begun[-1][1]

  monkeypatch.setattr(priority_annealing, 'PriorityAnnealing', watched)
  return begun


def test_parts_of_layers_move_after_layers(monkeypatch):
  problem = _problem(recurrent.two_readers(12, flops=1e10))
  begun = _watched(monkeypatch)
  coarse = multilevel.coarsened(problem)
  starts = np.ones((1, problem.graph.num_groups), np.int32)
  result = multilevel.search(coarse, starts, np.random.default_rng(0),
                             search_budget.SearchBudget(20_000),
                             lambda problem: None)
  layers = coarse.wholes().problem.graph.num_groups
  parts = coarse.parted().wholes().problem.graph.num_groups
  counts = [count for count, _ in begun if count in (layers, parts)]
  assert layers < parts and counts == sorted(counts) and parts in counts
  # At last the steps of these parts.
  assert begun[-1][0] == coarse.parted().problem.graph.num_groups
  without = _in_order_s(problem, _best_of_layers(coarse, starts))
  assert _in_order_s(problem, result.rows[0]) < .95 * without


@pytest.mark.parametrize('most', [1000, 3000])
def test_all_that_parts_price_counts(monkeypatch, most):
  # As if no two searches ever agreed.
  search_configs.patch(monkeypatch, coarse={'equal_difference': -1.})
  search_configs.patch(monkeypatch, coarse={'priced': 150})
  problem = _problem(recurrent.two_readers(12))
  begun = _watched(monkeypatch)
  coarse = multilevel.coarsened(problem)
  starts = np.ones((1, problem.graph.num_groups), np.int32)
  result = multilevel.search(coarse, starts, np.random.default_rng(0),
                             search_budget.SearchBudget(most),
                             lambda problem: None)
  # The first one only says what the best start takes.
  assert len({count for count, _ in begun[1:]}) == 3
  searches = [search for _, search in begun[1:]]
  priced = sum(search.evaluations for search in searches)
  assert result.progress == pytest.approx(min(priced / most, 1.), abs=.02)
  assert priced < 1.1 * most + 40
  # None only looks at where it might begin.
  assert all(search.evaluations > 40 for search in searches)


@pytest.mark.parametrize('make, parts',
                         [(recurrent.two_readers, True),
                          (lambda n: unrolled.make(3, n).graph, False)])
def test_layers_without_parts_have_the_time_of_parts(monkeypatch, make, parts):
  """Where a chain used all variables, layers had half of their time."""
  search_configs.patch(monkeypatch, coarse={'equal_difference': -1.})
  search_configs.patch(monkeypatch, coarse={'priced': 150})
  problem = _problem(make(12))
  begun = _watched(monkeypatch)
  coarse = multilevel.coarsened(problem)
  starts = np.ones((1, problem.graph.num_groups), np.int32)
  multilevel.search(coarse, starts, np.random.default_rng(0),
                    search_budget.SearchBudget(3000), lambda problem: None)
  layers = coarse.wholes().problem.graph.num_groups
  priced = sum(s.evaluations for count, s in begun[1:] if count == layers)
  assert (priced >= .65 * 3000) == (not parts)


def _best_of_layers(coarse, starts):
  """int [G], the fastest in the small graph with each layer on one device."""
  whole = multilevel._RepeatedAnnealing(coarse.wholes(), starts,
                                        np.random.default_rng(0),
                                        search_budget.SearchBudget(4000),
                                        multilevel._WHOLES)
  whole.run(1.)
  return whole.ranked()[0][1]
