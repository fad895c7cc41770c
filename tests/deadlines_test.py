"""Tests of gdp_grappler.deadlines."""

from __future__ import annotations

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
    assert deadline.earlier(1e9).left_s is None
    assert deadline.after(.1).left_s is None
