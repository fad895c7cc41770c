import numpy as np
import pytest

from gdp_grappler.evaluation.link_timing import line_fit

_SIZES = [1 << power for power in range(27)]


def _times(latency_s, bytes_per_s, noise=0., seed=0):
  factor = np.exp(noise * np.random.default_rng(seed).normal(size=len(_SIZES)))
  return (latency_s + np.array(_SIZES) / bytes_per_s) * factor


@pytest.mark.parametrize('latency_s, bytes_per_s', [(1e-5, 12e9), (2e-4, 1e9),
                                                    (1e-6, 4e11), (1e-2, 1e6)])
def test_exact_times_give_exact_figures(latency_s, bytes_per_s):
  line = line_fit.fit(_SIZES, _times(latency_s, bytes_per_s))
  assert line.latency_s == pytest.approx(latency_s, rel=1e-6)
  assert line.bytes_per_s == pytest.approx(bytes_per_s, rel=1e-6)
  assert line.worst_error < 1e-6 and not line.bounded
  assert line.seconds(1e6) == pytest.approx(latency_s + 1e6 / bytes_per_s)


@pytest.mark.parametrize('seed', range(20))
def test_noise(seed):
  line = line_fit.fit(_SIZES, _times(1e-4, 1e9, noise=0.2, seed=seed))
  assert line.latency_s == pytest.approx(1e-4, rel=0.25)
  assert line.bytes_per_s == pytest.approx(1e9, rel=0.35)
  assert 0.05 < line.error < 0.3


@pytest.mark.parametrize('outliers', [[3], [25], [2, 11, 26]])
def test_outliers_count_little(outliers):
  seconds = _times(1e-4, 1e9, noise=0.02)
  seconds[outliers] *= 5
  line = line_fit.fit(_SIZES, seconds)
  assert line.latency_s == pytest.approx(1e-4, rel=0.05)
  assert line.bytes_per_s == pytest.approx(1e9, rel=0.1)
  assert line.error < 0.05 and line.worst_error > 0.5


def test_small_sizes_count_as_much_as_large_ones():
  """Absolute errors would give a latency of nearly anything."""
  seconds = _times(1e-5, 1e9, noise=0.1, seed=4)
  line = line_fit.fit(_SIZES, seconds)
  assert line.latency_s == pytest.approx(1e-5, rel=0.15)


def test_times_that_do_not_depend_on_the_size():
  line = line_fit.fit(_SIZES, _times(1e-5, 1e30, noise=0.05))
  assert line.bounded and line.latency_s == pytest.approx(1e-5, rel=0.1)
  # The largest takes an unseen hundredth longer.
  assert _SIZES[-1] / line.bytes_per_s == pytest.approx(1e-7, rel=0.2)


def test_times_that_shrink_are_no_negative_bandwidth():
  line = line_fit.fit([1, 1000], [2e-5, 1e-5])
  assert line.bounded and line.latency_s > 0 and line.bytes_per_s > 0


def test_times_without_latency():
  line = line_fit.fit(_SIZES, np.array(_SIZES) / 1e9)
  assert line.latency_s == pytest.approx(0, abs=1e-12)
  assert line.bytes_per_s == pytest.approx(1e9)
  assert line_fit.fit([1, 10], [1., 20.]).latency_s == 0


def test_what_is_not_positive_is_left_out():
  seconds = _times(1e-4, 1e9)
  seconds[[0, 4, 7]] = -1e-6, 0., np.nan
  line = line_fit.fit(_SIZES, seconds)
  assert line.latency_s == pytest.approx(1e-4, rel=1e-6)


@pytest.mark.parametrize('seconds', [[0., 0., 0.], [1., 0., -1.]])
def test_too_few_times(seconds):
  with pytest.raises(ValueError, match='Two sizes'):
    line_fit.fit([1, 2, 3], seconds)
