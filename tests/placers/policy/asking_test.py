import itertools

import numpy as np
import pytest

from gdp_grappler.placers.policy import asking
from gdp_grappler.placers.search.moves import moves as moves_lib
from helpers import graphs
from helpers import problems


def _asked(worth_s, budget_s=60., clock=lambda: 0.):
  problem = problems.make(graphs.random_graph(0, 200))
  starts = np.ones((6, problem.graph.num_groups), np.int32)
  return problem, asking.asked(problem, worth_s, budget_s, clock,
                               moves_lib.Moves(problem), starts)


def test_what_is_worth_little_waits_for_no_policy():
  assert _asked(.01)[1] is None
  assert _asked(10.)[1] is not None


def test_it_goes_on_from_what_others_have_found():
  problem, found = _asked(10.)
  start = problem.evaluator.price_groups(
      problem.graph, np.ones((1, problem.graph.num_groups), np.int32))
  assert found.devices[0].tolist() == [1] * problem.graph.num_groups
  assert found.prices.seconds.min() < start.seconds[0]


def test_it_stops_when_its_time_is_over():
  ticks = itertools.count()
  _, hurried = _asked(10., 3., lambda: next(ticks))
  assert len(hurried.prices) < len(_asked(10.)[1].prices) == 64


@pytest.mark.parametrize('repeats', [True, False])
def test_where_the_clock_should_not_count_it_has_more_time(repeats):
  assert asking.share(True, repeats) > asking.share(False, repeats)
