"""Ratios, means and texts of numbers."""

import pytest

from helpers import bench_results
from placer_model.benchmark import figures

_CELL = bench_results.cell


def test_ratios_need_two_placements_that_run():
  assert figures.ratio(_CELL(3.), _CELL(2.)) == 1.5
  for other in (None, _CELL(None), bench_results.failure()):
    assert figures.ratio(other, _CELL(2.)) is None
    assert figures.ratio(_CELL(2.), other) is None


def test_steps_that_take_no_time():
  # A graph of such steps once ended the report of all tasks.
  assert figures.ratio(_CELL(0.), _CELL(0.)) == 1.
  assert figures.ratio(_CELL(1.), _CELL(0.)) is None
  assert figures.ratio(_CELL(0.), _CELL(1.)) is None


def test_geomean_skips_what_is_missing():
  assert figures.geomean([2., None, 8.]) == (pytest.approx(4.), 2)
  assert figures.geomean([None]) == (None, 0)


def test_geomean_skips_zeros():
  """A step without time ended `gdp_bench --report` by a traceback."""
  assert figures.geomean([0., 4.]) == (pytest.approx(4.), 1)


def test_best_is_the_first_of_equals():
  cells = {'a': _CELL(None), 'b': _CELL(1.), 'c': _CELL(1.), 'd': _CELL(2.)}
  assert figures.best(cells) == 'b'
  assert figures.best(cells, ['d', 'c', 'unknown']) == 'c'
  assert figures.best(cells, ['a']) is None
  cells['d'] = _CELL(2., ordered_step_time_s=.1)
  assert figures.best(cells, key=figures.ORDERED) == 'd'


@pytest.mark.parametrize('record, text', [(None, '-'),
                                          (_CELL(.123456), '0.1235 s'),
                                          (_CELL(None), 'OOM +3.00 GiB'),
                                          (bench_results.failure(), 'failed')])
def test_steps(record, text):
  assert figures.step(record) == text


@pytest.mark.parametrize('count, text', [(12, '12 B'), (1536, '1.50 KiB'),
                                         (3 << 20, '3.00 MiB'),
                                         (5 << 30, '5.00 GiB')])
def test_sizes(count, text):
  assert figures.size(count) == text


def test_one_reason_for_a_whole_task_names_no_placer():
  task = bench_results.task(a=bench_results.failure('no graph'),
                            b=bench_results.failure('no graph'))
  assert set(figures.failures(task)) == {'net@2xP100: no graph'}
  mixed = bench_results.task(a=bench_results.failure(), b=_CELL())
  assert figures.failures(mixed) == ['net@2xP100, a: crashed with SIGSEGV']
