"""When a step has been clocked often enough, on a clock of our own."""

import pytest

from gdp_grappler.evaluation.measuring import timing


class Steps:
  """A step whose seconds are given, and a clock that shows them."""

  def __init__(self, *seconds):
    self.seconds, self.count, self.time_s = seconds, 0, 100.

  def __call__(self):
    self.time_s += self.seconds[self.count % len(self.seconds)]
    self.count += 1

  def now(self):
    return self.time_s


def clock(step, **changes):
  return timing.clock(
      step,
      timing.Schedule(
          **{**dict(warmup=2, steps=5, budget_s=20., tolerance=.02), **changes
            }), step.now)


def test_an_even_step_is_run_two_rounds():
  steps = Steps(.1)
  clocked = clock(steps)
  assert steps.count == 2 + 5 + 5
  assert clocked.num_steps == 10
  assert clocked.median_s == pytest.approx(.1)
  assert clocked.spread_s == pytest.approx(0)


def test_warm_up_does_not_count():

  class Cold(Steps):

    def __call__(self):
      self.time_s += 9. if self.count < 2 else .1
      self.count += 1

  assert clock(Cold()).median_s == pytest.approx(.1)


def test_short_steps_are_clocked_for_a_tenth_of_a_second():
  steps = Steps(1e-3)
  clock(steps)
  assert steps.time_s - 100. >= .1


def test_uneven_steps_take_longer():
  # Half of 1.0 and half of 1.2 s: an interquartile range of 0.2 s, whose notch
  # is within 2 % of 1.1 s after (1.57 * 0.2 / 0.022) ^ 2 = 204 steps.
  steps = Steps(1., 1.2)
  clocked = clock(steps, budget_s=1e9, steps=6)
  assert 204 <= clocked.num_steps <= 210
  assert clocked.median_s == pytest.approx(1.1)
  assert clocked.spread_s == pytest.approx(.2)


def test_the_budget_ends_what_never_becomes_stable():
  steps = Steps(1., 3., 2., 9.)
  clocked = clock(steps, budget_s=50.)
  assert 50. <= steps.time_s - 100. <= 50. + 5 * 9. + 2 * 9.
  assert clocked.spread_s > 1.


def test_a_drift_is_not_stable():
  before = timing.Clocked(1., 0., 10)
  assert timing.is_stable(before, timing.Clocked(1.01, 0., 20), .02)
  assert not timing.is_stable(before, timing.Clocked(1.1, 0., 20), .02)


def test_one_outlier_moves_neither_median_nor_spread():
  assert timing.summarize([1.] * 9 + [50.]) == timing.Clocked(1., 0., 10)
