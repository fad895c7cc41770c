"""What the first `fit` costs: the program that says so."""

import json

import pytest

from helpers import benchmarks

first_fit = benchmarks.module('first_fit')

_KEYS = ('devices', 'steps', 'off_s', 'on_s', 'on / off', 'ours_s', 'share',
         'said_s', 'off_traces', 'on_traces')


@pytest.mark.e2e
def test_both_ways_trace_the_same_and_ours_is_a_part(tmp_path):
  done = benchmarks.run('first_fit', '--json', '--quiet', '--runs=1',
                        '--layers=3', '--devices', 'two CPUs', '--steps', '2',
                        folder=tmp_path)
  assert done.code == 0, done.stderr
  row, = json.loads(done.stdout)
  assert tuple(row) == _KEYS
  assert row['off_traces'] == row['on_traces'] > 0
  # The plugin needs some time to leave a graph alone, and its line tells it.
  assert 0 < row['ours_s'] < row['on_s'] and row['said_s'] > 0


def test_lines_of_several_graphs_are_added_up():
  said = first_fit._Said()
  for line in ('a: left; 20 ms spent', 'b: 3 ms (simulated)',
               'c: placed; 1.5e+03 ms spent, as decided earlier in this run'):
    said.emit(first_fit.logging.LogRecord('', 0, '', 0, line, None, None))
  assert said.spent_s == pytest.approx(1.52)
