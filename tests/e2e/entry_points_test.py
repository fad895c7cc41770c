"""All ways to run a graph, in one fresh interpreter."""

import numpy as np
import pytest

from helpers import fresh

pytestmark = pytest.mark.e2e


@pytest.fixture(scope='module')
def finished():
  return fresh.run('entry_points.py')


@pytest.fixture(scope='module')
def results(finished):
  return finished.results


def test_switching_acts_on_a_traced_function(results):
  steps = results['switching']['steps']
  assert [len(step['devices']) > 1 for step in steps
         ] == [False, True, False, True, False]
  assert results['switching']['traces'] == 1
  assert len({step['sum'] for step in steps}) == 1


def test_switching_reaches_threads_that_have_called_before(results):
  assert [len(devices) > 1 for devices in results['old_threads']
         ] == [False, True, False, True]


def test_a_plan_puts_scopes_on_devices(finished, results):
  found = results['planned']
  assert found['stock'] == found['placed']
  assert min(found['devices'][f'CPU:{i}'] for i in (1, 2)) >= 12
  assert sum('placed by the map of layers' in l for l in finished.notices) == 1


def test_threads_are_served_at_once(results):
  base = results['threads'][1]
  assert base > 0
  np.testing.assert_allclose(results['threads'], [0, base, 2 * base, 3 * base],
                             rtol=1e-6)


@pytest.mark.parametrize('kind', ['own_config', 'no_config', 'monitored'])
def test_v1_session_is_placed_and_right(results, kind):
  stock, placed = results['sessions']['stock'], results['sessions'][kind]
  assert set(stock['devices']) == {'CPU:0'}
  assert len(placed['devices']) > 1
  assert placed['losses'] == stock['losses']


def test_session_does_not_change_the_callers_config(results):
  assert results['sessions']['own_config']['untouched']
  assert results['sessions']['monitored']['untouched']


def test_a_session_whose_executor_has_one_thread_is_left_alone(
    finished, results):
  """A placed session once waited forever for a tensor of another device."""
  stock, found = results['one_thread']
  assert found == stock and set(stock['devices']) == {'CPU:0'}
  assert sum('sessions with SINGLE_THREADED_EXECUTOR' in l
             for l in finished.notices) == 1


def test_a_function_whose_executor_has_one_thread_is_left_alone(
    finished, results):
  """A placed function once waited forever for a tensor of another device."""
  found = results['one_thread_function']
  assert set(found['in_scope']) == {'CPU:0'} and len(found['after']) > 1
  assert sum('functions with SINGLE_THREADED_EXECUTOR' in l
             for l in finished.notices) == 1


def test_signature_of_a_saved_model_is_placed_and_right(results):
  stock, placed = (results['saved_model'][k] for k in ('stock', 'placed'))
  assert len(stock['devices']) == 1 and len(placed['devices']) > 1
  assert placed['sum'] == stock['sum']


def test_dataset_functions_are_left_alone(results):
  assert len(results['dataset']['sums']) == 3
  assert results['dataset']['asked'] == []


def test_loop_and_its_gradient_are_placed_and_right(results):
  stock, placed = results['loop']
  assert len(stock['devices']) == 1 and len(placed['devices']) > 1
  assert placed['values'] == stock['values']


def test_no_warnings(finished):
  assert finished.notices
  # The warning on two scopes that share a variable is right.
  assert not [
      line for line in finished.notices
      if 'Warning' in line.replace('Warning: "left" and "right/*" share', '')
  ]
