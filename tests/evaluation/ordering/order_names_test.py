"""Tests of which order is meant."""

import pytest

from gdp_grappler import errors
from gdp_grappler.evaluation.ordering import order_names


@pytest.mark.parametrize('wanted, has_priorities, meant', [
    (None, False, 'fifo'),
    (None, True, 'critical_path'),
    ('fifo', True, 'fifo'),
    ('critical_path', False, 'critical_path'),
])
def test_a_plan_with_priorities_is_ordered_unless_somebody_says_otherwise(
    wanted, has_priorities, meant):
  assert order_names.chosen(wanted, has_priorities) == meant


def test_unknown_order():
  with pytest.raises(errors.GdpError, match='"lifo"; there are fifo, crit'):
    order_names.chosen('lifo', False)


def test_what_nobody_ordered_goes_by_the_default():
  assert order_names.chosen(None, False) == order_names.DEFAULT
