"""What limits the best placement."""

import pytest

from helpers import bench_results
from placer_model.benchmark import headroom

_CELL = bench_results.cell


def _limits(path_s=.1, channel_s=.1, device_s=.1, **of_this_version):
  return {
      'critical_path_s': path_s, 'busiest_channel_s': channel_s,
      'busiest_device_s': device_s, **of_this_version
  }


def _verdict(step_s=1., others=(), **limits):
  return headroom.verdict(
      bench_results.task(metis=_CELL(step_s, limits=_limits(**limits)),
                         **dict(others)))


@pytest.mark.parametrize(
    'limits, reason', [({'path_s': .95, 'device_s': .93}, 'transfers'),
                       ({'channel_s': .91}, 'link'),
                       ({'device_s': 1.}, 'device'),
                       ({'busiest_hosted_s': .95}, 'host'),
                       ({'device_s': .93, 'busiest_hosted_s': .95}, 'device'),
                       ({'device_s': .89, 'path_s': .5}, 'waiting')])
def test_reasons(limits, reason):
  verdict = _verdict(**limits)
  assert verdict.reason == reason
  assert verdict.over_bound == 2. and verdict.bound_by == 'critical path'


def test_near_the_bound_there_is_nothing_to_gain():
  assert _verdict(.52, device_s=.52).reason == 'bound'
  assert _verdict(.53, device_s=.53).reason == 'device'


def test_one_card_is_too_small():
  assert _verdict().needs_several is None  # Nobody tried.
  assert _verdict(others={'gpu_only': _CELL(1.)}).needs_several is False
  verdict = _verdict(others={'gpu_only': _CELL(None)})
  assert verdict.needs_several and not verdict.is_full
  assert verdict.text.endswith('one accelerator does not hold the graph')


def test_memory_limits_where_it_is_full():
  full = _CELL(1., peak_bytes={'GPU:0': 91}, capacity_bytes={'GPU:0': 100})
  verdict = headroom.verdict(
      bench_results.task(metis=full, gpu_only=_CELL(None)))
  assert verdict.is_full and verdict.needs_several
  assert verdict.text.endswith('memory limits the choice')


def test_another_order_may_have_another_winner():
  verdict = headroom.verdict(
      bench_results.task(metis=_CELL(1.), m_etf=_CELL(1.1,
                                                      ordered_step_time_s=.6)))
  assert (verdict.placer, verdict.step_time_s) == ('metis', 1.)
  assert (verdict.ordered, verdict.ordered_step_time_s) == ('m_etf', .6)
  verdict = headroom.verdict(
      bench_results.task(metis=_CELL(1., ordered_step_time_s=None)))
  assert verdict.ordered is None


def test_nothing_runs():
  assert headroom.verdict(bench_results.task(metis=_CELL(None))) is None
  assert headroom.verdict(
      bench_results.task(metis=bench_results.failure())) is None


def test_no_bound_is_known():
  task = bench_results.task(metis=_CELL(1.)) | {'lower_bound_s': None}
  assert headroom.verdict(task) is None
