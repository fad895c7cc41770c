import numpy as np
import pytest

from gdp_grappler.evaluation import evaluator
from gdp_grappler.placers.search import search_config
from gdp_grappler.placers.search import search_worth

# Lower bound of the step, and the most that a search may take, in seconds.
_BOUND_S, _BUDGET_S = 3., 60.


def _prices(seconds, overflow=0):
  return evaluator.Prices(np.array([seconds]), np.zeros((1, 3), int),
                          np.array([overflow]), np.array([not overflow]))


@pytest.mark.parametrize('gain_s', [0., 1e-5, 1e-4])
def test_what_the_steps_of_a_program_could_gain(gain_s):
  found = search_worth.SearchWorth(_BOUND_S,
                                   _BUDGET_S).seconds(_prices(3. + gain_s))
  assert found == pytest.approx(search_config.DEFAULT.time.steps * gain_s,
                                abs=1e-6)


def test_no_more_than_there_is_time_for():
  assert search_worth.SearchWorth(_BOUND_S,
                                  _BUDGET_S).seconds(_prices(6.)) == 60.


def test_what_does_not_fit_is_worth_all():
  assert search_worth.SearchWorth(_BOUND_S,
                                  _BUDGET_S).seconds(_prices(3.,
                                                             overflow=1)) == 60.
