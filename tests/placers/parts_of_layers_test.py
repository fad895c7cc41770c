import numpy as np
import pytest

from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.search import multilevel
from gdp_grappler.placers.search import priority_annealing
from gdp_grappler.placers.search import search_budget
from gdp_grappler.placers.search import staged_search
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


def _searched(monkeypatch, graph, most):
  """Searches the coarse graph, with at most this number of prices.

  Returns:
    The problem, its coarse problem, the annealings in the order in which they
    begin, each with its number of groups, and the result of the search.
  """
  search_configs.patch(monkeypatch, coarse={'own_work': .5})
  problem, begun = _problem(graph), []
  coarse = multilevel.coarsened(problem)
  starts = np.ones((1, problem.graph.num_groups), np.int32)
  stock = priority_annealing.PriorityAnnealing

  def watched(problem, *arguments):
    begun.append((problem.graph.num_groups, stock(problem, *arguments)))
    return begun[-1][1]

  with monkeypatch.context() as patch:
    patch.setattr(priority_annealing, 'PriorityAnnealing', watched)
    result = multilevel.search(coarse, starts, np.random.default_rng(0),
                               search_budget.SearchBudget(most),
                               staged_search.no_model)
  return problem, coarse, begun, result


def test_parts_of_layers_move_after_layers(monkeypatch):
  problem, coarse, begun, result = _searched(
      monkeypatch, recurrent.two_readers(12, flops=1e10), 20_000)
  whole, parted = coarse.wholes(), coarse.parted()
  # The last level has the time steps of the parts.
  levels = [
      each.problem.graph.num_groups for each in (whole, parted.wholes(), parted)
  ]
  counts = [count for count, _ in begun]
  assert counts == sorted(counts) and sorted({*counts}) == levels
  layers = [
      annealing.best.devices[whole.problem.graph.first_ops]
      for count, annealing in begun if count == levels[0]
  ]
  without_s = min(
      _in_order_s(problem, row) for row in whole.spread(np.stack(layers)))
  assert _in_order_s(problem, result.rows[0]) < .95 * without_s


@pytest.mark.parametrize('most', [1000, 3000])
def test_all_that_parts_price_counts(monkeypatch, most):
  *_, begun, result = _searched(monkeypatch, recurrent.two_readers(12), most)
  assert len({count for count, _ in begun}) == 3
  priced = [annealing.evaluations for _, annealing in begun]
  assert result.progress == 1 and most <= sum(priced) < 1.1 * most
  # Each annealing prices more than its starts.
  assert min(priced) > 40


@pytest.mark.parametrize('make, layers_until, until',
                         [(recurrent.two_readers, .35, .35),
                          (recurrent.two_readers, 1., .8),
                          (lambda n: unrolled.make(3, n).graph, .35, .8)])
def test_layers_without_parts_have_the_time_of_parts(monkeypatch, make,
                                                     layers_until, until):
  """In a graph without parts, layers once had only half of this time."""
  search_configs.patch(monkeypatch,
                       coarse={'layers_until': layers_until, 'parts_until': .8})
  _, coarse, begun, _ = _searched(monkeypatch, make(12), 3000)
  layers = coarse.wholes().problem.graph.num_groups
  priced = sum(each.evaluations for count, each in begun if count == layers)
  assert priced == pytest.approx(until * 3000, abs=60)
  # Parts move only if the config gives them time.
  assert len({count for count, _ in begun}) == 2 + (until < .8)
