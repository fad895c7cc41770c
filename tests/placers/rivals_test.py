"""The default placer is no worse than the placers that it asks."""

import dataclasses

import numpy as np
import pytest

from gdp_grappler import deadlines
from gdp_grappler.placers import best_of
from gdp_grappler.placers import default_placer
from gdp_grappler.workloads.synthetic import synthetic

# The clock stands still, so this budget stands for about a hundred prices.
_BUDGET_S = .05


def _drawn(seed, tight):
  """A problem whose memories are nearly full, or have much room."""
  config = synthetic.Config(ops=(100, 250), accelerators=(2, 8), tight=tight)
  drawn = synthetic.draw(np.random.default_rng(seed), config)
  return dataclasses.replace(drawn.step.problem(seed=seed),
                             time_budget_s=_BUDGET_S, clock=deadlines.still)


@pytest.mark.parametrize('tight', [0., 1.])
@pytest.mark.parametrize('seed', range(4))
def test_it_is_no_worse_than_any_placer_that_it_asks(seed, tight):
  problem = _drawn(seed, tight)
  theirs, _ = best_of.propose_each(problem, default_placer.ANCHORS)
  assert len(theirs) > 3
  own = default_placer.DefaultPlacer(asks_policy=False).place(problem)
  prices = problem.evaluator.price(
      problem.graph,
      np.stack([own.devices, *(best.devices for best, *_ in theirs.values())]))
  keys = prices.keys()
  assert keys[0] <= min(keys[1:])
