"""The time of the default placer if prices take long."""

import dataclasses

import numpy as np
import pytest

from gdp_grappler.placers import default_placer
from helpers import clusters
from helpers import graphs
from helpers import problems
from helpers import slow_prices


@pytest.mark.parametrize('each_s', [.05, .2, .5, 1.])
def test_a_search_whose_starts_do_not_fit_does_not_begin(each_s):
  """Such a search once priced its starts after the end of its time."""
  problem = problems.make(graphs.make_graph(num_ops=12),
                          clusters.make_cluster(2), np.full(
                              (12, 3), 1.), time_budget_s=10.)
  prices = slow_prices.SlowPrices(problem.evaluator, each_s)
  placer = default_placer.DefaultPlacer(anchors=('single_device',),
                                        asks_policy=False, asks_moves=False)
  placer.place(
      dataclasses.replace(problem, evaluator=prices, clock=prices.clock))
  # The result of the search is priced after its end.
  assert prices.now <= 10. + each_s
