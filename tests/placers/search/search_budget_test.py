"""Tests of search_budget."""

import pytest

from gdp_grappler.placers.search import search_budget


@pytest.mark.parametrize('seconds, grace, passed_s, expected', [
    (None, 0., 5., 8),
    (10., 0., 2., 8),
    (10., 0., 7., 3),
    (10., 0., 9.5, 1),
    (10., 0., 20., 1),
    (10., .5, 5., 8),
    (10., .5, 9.5, 1),
])
def test_what_is_affordable_goes_by_the_clock(seconds, grace, passed_s,
                                              expected):
  clock = iter((0., *[passed_s] * 9))
  limit = search_budget.SearchBudget(100, seconds, grace, lambda: next(clock))
  assert limit.affordable(1., 8) == expected


def test_what_is_affordable_may_take_a_share():
  clock = iter((0., *[2.] * 9))
  limit = search_budget.SearchBudget(100, 10., clock=lambda: next(clock))
  assert limit.affordable(1., 8, .5) == 4
  assert limit.affordable(1., 8, .1) == 1


def test_a_part_begins_now_and_ends_sooner():
  now = [0.]
  limit = search_budget.SearchBudget(1000, 10., clock=lambda: now[0])
  now[0] = 5.
  part = limit.part(.2)
  assert part.evaluations == 200 and part.progress(100) == .5
  now[0] = 6.
  assert part.progress(0) == .5 and limit.progress(0) == .6
  assert limit.part(0.).progress(0) == 1.
  assert search_budget.SearchBudget(1000).part(.5).progress(250) == .5


def test_a_part_forgives_as_much_of_its_time():
  now = [0.]
  limit = search_budget.SearchBudget(1000, 10., .5, lambda: now[0])
  part = limit.part(.4)
  now[0] = 2.
  assert part.progress(40) == .1
  now[0] = 3.
  assert part.progress(40) == .5


def test_what_is_kept_ends_a_search_sooner():
  now = [0.]
  limit = search_budget.SearchBudget(100, 10., clock=lambda: now[0])
  limit.keep(2.)
  now[0] = 4.
  assert limit.progress(1) == pytest.approx(.5)
  limit.keep(9.)
  assert limit.progress(1) == 1
  free = search_budget.SearchBudget(100)
  free.keep(1.)
  assert free.progress(50) == .5


@pytest.mark.parametrize('seconds, grace, passed_s, expected', [
    (None, 0., 5., False),
    (10., 0., 5., False),
    (10., 0., 8., True),
    (10., .5, 5., False),
    (10., .9, 8., False),
])
def test_what_would_end_too_late_is_known_before_it_begins(
    seconds, grace, passed_s, expected):
  clock = iter((0., passed_s))
  limit = search_budget.SearchBudget(100, seconds, grace, lambda: next(clock))
  limit.progress(1)
  assert limit.ends_within(3.) is expected
  assert limit.seen_s == (0. if seconds is None else passed_s)
