import hypothesis
from hypothesis import strategies as st
import pytest

from gdp_grappler.evaluation.profiling import visits as visits_lib


@hypothesis.given(st.floats(0, 1), st.integers(0, 10**5), st.floats(0, 1),
                  st.floats(0, 1), st.floats(0, 1e-5))
def test_the_stopwatch_has_the_last_word(sum_s, visits, step_s, share,
                                         least_visit_s):
  empty_s = step_s * share
  scale, visit_s = visits_lib.reconcile(sum_s, visits, step_s, empty_s,
                                        least_visit_s)
  assert 0 <= visit_s and 0 <= scale <= 1
  if visits:
    assert sum_s * scale + visits * visit_s + empty_s == pytest.approx(step_s)


def test_what_is_left_is_the_executor_s():
  assert visits_lib.reconcile(6., 2, 10., 1., .1) == (1., 1.5)


def test_inflated_traces_are_scaled_down():
  scale, visit_s = visits_lib.reconcile(18., 10, 10., 1., .1)
  assert (scale, visit_s) == pytest.approx((8 / 18, .1))
