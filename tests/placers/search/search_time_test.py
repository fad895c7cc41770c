import dataclasses
import math
import sys

import numpy as np
import pytest

from gdp_grappler import deadlines
from gdp_grappler.evaluation import evaluator
from gdp_grappler.placers.search import search_time
from helpers import graphs
from helpers import problems


def _problem(**fields):
  return problems.make(graphs.make_graph(num_ops=12), seconds=1., **fields)


def _prices(seconds, peak_bytes=0):
  return evaluator.Prices.from_peaks(np.array(seconds),
                                     np.full((len(seconds), 2), peak_bytes),
                                     np.array([8, 8]))


@pytest.mark.parametrize('seconds, bound_s, worth_s', [
    ([5., 3.], 3., 0.),
    ([5., 3.], 2.9998, 2.),
    ([5., 3.], 1., 30.),
    ([3., 3.], 4., 0.),
])
def test_a_search_is_worth_the_gain_of_ten_thousand_steps(
    seconds, bound_s, worth_s):
  problem = _problem(time_budget_s=30.)
  assert search_time.worth_s(problem, _prices(seconds),
                             bound_s) == pytest.approx(worth_s)


def test_a_placement_that_fits_is_worth_all_of_the_time():
  problem = _problem(time_budget_s=30.)
  assert search_time.worth_s(problem, _prices([3.], 9), 3.) == 30


@pytest.mark.parametrize('budget_s, seconds', [(None, 10.), (4., 4.)])
def test_the_budget_has_a_default(budget_s, seconds):
  assert search_time.budget_s(_problem(time_budget_s=budget_s)) == seconds


@pytest.mark.parametrize('left_s, seconds', [(math.inf, 7.), (10., 3.5),
                                             (0., 0.)])
def test_the_coarse_search_has_a_share(left_s, seconds):
  deadline = (deadlines.NEVER if math.isinf(left_s) else deadlines.within(
      left_s, lambda: 0.))
  problem = _problem(time_budget_s=40.)
  assert search_time.coarse_s(problem, 20., deadline) == pytest.approx(seconds)


def test_the_clock_ends_a_search_with_a_budget():
  now = iter([0., 4.])
  problem = _problem(time_budget_s=40., clock=lambda: next(now))
  budget = search_time.limit(problem, 20., 10.)
  assert budget.progress(0) == pytest.approx(.4)


def test_a_number_of_prices_ends_a_repeatable_search():
  problem = dataclasses.replace(_problem(time_budget_s=40.), repeatable=True)
  few, many = (search_time.limit(problem, worth_s, 40.) for worth_s in (.1, .2))
  assert 0 < few.evaluations < many.evaluations
  assert few.evaluations % 16 == 0


@pytest.mark.parametrize('ops, count', [
    (1, 500),
    (3, 50 * 3**3),
    (40, sys.maxsize),
])
@pytest.mark.parametrize('fields', [{}, {'time_budget_s': 9.}])
def test_a_search_ends_when_it_has_tried_all_placements(ops, count, fields):
  """Four ops on two devices were once priced for 16 of 20 seconds."""
  problem = problems.make(graphs.make_graph(num_ops=ops), **fields)
  assert problem.cluster.num_devices == 3
  most = count if fields else min(count, 20_000)
  assert search_time.evaluations_for(problem) == most
