import math

import numpy as np
import pytest

from gdp_grappler.placers import quick_schedule
from gdp_grappler.placers.search import priced_placements
from helpers import clusters
from helpers import graphs
from helpers import problems


def _independent(**fields):
  """12 ops of 1 s on two accelerators, and all of them on the first one."""
  problem = problems.make(graphs.make_graph(num_ops=12),
                          clusters.make_cluster(2), 1., **fields)
  priced = priced_placements.PricedPlacements(problem.graph, problem.evaluator)
  priced.add([np.ones(12, int)], 'one device')
  return problem, priced


def test_the_best_placement_is_added():
  problem, priced = _independent()
  assert quick_schedule.add(problem, priced, 1.)
  assert priced.sources == ('one device', quick_schedule.PLACER)
  assert priced.prices.seconds.tolist() == [12, 6]


def test_what_is_no_better_is_not_added():
  problem, priced = _independent()
  priced.add([np.arange(12) % 2 + 1], 'halves')
  assert quick_schedule.add(problem, priced, 1.)
  assert priced.sources == ('one device', 'halves')


@pytest.mark.parametrize('budget_s, made', [(1e-4, False), (2e-4, True)])
def test_it_takes_a_share_of_the_time(budget_s, made):
  # 12 ops and 3 devices: 36 us.
  problem, priced = _independent(time_budget_s=budget_s)
  assert quick_schedule.add(problem, priced, .2) == made
  assert len(priced.sources) == 1 + made


@pytest.mark.parametrize(
    'row, alone_s, wanted',
    [
        # The bound is 6 s, so a good step is at most the root of 72 s: 8.5 s.
        ([1] * 12, 12., True),
        ([1] * 9 + [2] * 3, 12., True),
        ([1] * 8 + [2] * 4, 12., False),
        ([1] * 12, math.inf, False),
    ])
def test_it_is_wanted_if_no_placement_is_good(row, alone_s, wanted):
  problem, _ = _independent()
  priced = priced_placements.PricedPlacements(problem.graph, problem.evaluator)
  priced.add([np.array(row)])
  assert quick_schedule.is_wanted(priced, alone_s, 6.) == wanted


def test_it_is_wanted_if_nothing_fits():
  problem = problems.make(graphs.make_graph(num_ops=12, param_bytes=80),
                          clusters.make_cluster(2, memory_bytes=100), 1.)
  priced = priced_placements.PricedPlacements(problem.graph, problem.evaluator)
  priced.add([np.ones(12, int)])
  assert quick_schedule.is_wanted(priced, math.inf, 6.)
