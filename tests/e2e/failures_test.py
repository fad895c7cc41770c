"""A placer that fails costs one warning and nothing else."""

import pytest

from helpers import fresh

pytestmark = pytest.mark.e2e
_RUBBISH = ('raises', 'exits', 'short', 'unknown', 'not_text', 'empty',
            'nothing')


@pytest.fixture(scope='module')
def finished():
  return fresh.run('failures.py')


@pytest.mark.parametrize(
    'kind',
    [*_RUBBISH, 'reenters', 'hangs', 'still_busy', 'from_cache', 'recovers'])
def test_result_is_right(finished, kind):
  assert finished.results['right'][kind]


@pytest.mark.parametrize('text', [
    'RuntimeError: broken placer with two lines', 'SystemExit: 3',
    'gave 1 devices for', 'unknown device "/device:GPU:7"',
    'unknown device "1"', 'gave 0 devices for', "'NoneType'",
    'longer than its time budget', 'still busy'
])
def test_warns_once_per_cause(finished, text):
  assert sum(text in line for line in finished.notices) == 1


def test_warnings_are_lines_of_their_own(finished):
  assert all(line.startswith('[gdp] Warning: ') for line in finished.notices)
  assert 'Traceback' not in finished.stderr


def test_placer_runs_on_one_thread_and_never_for_its_own_graphs(finished):
  assert finished.results['calls'] == ['gdp_placer']


def test_exceptions_of_signal_handlers_reach_the_program(finished):
  """Once only Ctrl-C did, so programs survived the signals of `timeout`."""
  assert finished.results['interrupted'] == [
      'KeyboardInterrupt()', "TimeoutError('mine')", 'SystemExit(7)'
  ]


def test_nobody_waits_for_a_placer_that_ran_out_of_time(finished):
  """If the program waited, it would wait for itself and never end."""
  assert finished.results['hung'] == 1


def test_recovers_when_the_late_job_ends(finished):
  assert finished.results['calls_after'] == 2
