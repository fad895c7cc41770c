"""Tests of gdp_grappler.deadlines."""

from __future__ import annotations

import math

from gdp_grappler import deadlines


def test_a_deadline_comes_nearer_and_passes():
  now = [5.]
  deadline = deadlines.within(10., lambda: now[0])
  assert deadline.left_s == 10 and not deadline.passed
  assert deadline.earlier(3.).left_s == 7
  assert deadline.after(.5).left_s == 5
  now[0] = 12.
  assert deadline.left_s == 3 and deadline.earlier(3.).passed
  now[0] = 20.
  assert deadline.left_s == 0 and deadline.passed


def test_without_a_hurry_nothing_passes():
  for deadline in (deadlines.within(None), deadlines.NEVER):
    assert deadline.left_s is None and not deadline.passed
    assert deadline.remaining_s == math.inf
    assert deadline.earlier(1e9).left_s is None
    assert deadline.after(.1).left_s is None


def test_what_is_spent_is_a_share():
  now = [5.]
  deadline = deadlines.within(10., lambda: now[0])
  assert deadline.spent(5.) == 0 and deadline.spent(7.) == 0
  now[0] = 10.
  assert deadline.spent(5.) == .5
  assert deadline.spent(7.) == 3 / 8
  for now[0] in (15., 99.):
    assert deadline.spent(5.) == deadline.spent(15.) == 1
  assert deadlines.NEVER.spent(5.) == 0


def test_adds_up_what_is_done_and_what_is_going_on():
  now = [0.]
  watch = deadlines.Stopwatch(lambda: now[0])
  with watch.running():
    now[0] = 2.
    assert watch.seconds == 2
  now[0] = 5.
  assert watch.seconds == 2
  with watch.running():
    now[0] = 6.
  assert watch.seconds == 3


def test_time_of_several_threads_counts_once():
  """Four threads that waited for one load once counted four times its time."""
  now = [0.]
  watch = deadlines.Stopwatch(lambda: now[0])
  with watch.running():
    now[0] = 1.
    with watch.running():
      now[0] = 3.
      assert watch.seconds == 3
    now[0] = 4.
  assert watch.seconds == 4


def test_a_deadline_is_put_off_by_what_is_done_once(monkeypatch):
  now = [5.]
  loading = deadlines.Stopwatch(lambda: now[0])
  monkeypatch.setattr(deadlines, 'LOADING', loading)
  with loading.running():
    now[0] = 10.  # Before it began: that is none of its business.
  deadline = deadlines.without_loading(4, lambda: now[0])
  assert deadline.left_s == 4
  now[0] = 11.
  with loading.running():
    now[0] = 111.
    assert deadline.left_s == 3
  now[0] = 113.
  assert deadline.left_s == 1
  now[0] = 200.
  assert deadline.left_s == 0
