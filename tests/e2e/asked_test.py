"""Ops and variables under `tf.device` stay there, unless pins are ignored."""

import pytest

from helpers import programs

pytestmark = pytest.mark.e2e

results = programs.results('asked.py')


def test_weights_of_layers_made_under_a_device_stay(results):
  assert results['weights'] == ['CPU:1']
  assert len(results['freed']) > 1


def test_line_of_a_fit_says_what_stays(results):
  line = next(line for line in results['fit_lines']
              if line.startswith('fit of "functional'))
  assert "8 variables stay where tf.device put them ('pins')" in line


@pytest.mark.parametrize('kind', ['op', 'of_saved', 'of_session'])
def test_ops_stay(results, kind):
  assert results[kind] == ['CPU:1']


def test_ops_of_a_partial_run_stay(results):
  """The pass once missed graphs that `partial_run_setup` optimizes."""
  assert any("1 op stays where tf.device put it ('pins')" in line
             for line in results['partial_lines'])


def test_the_warning_of_a_partial_run_names_the_user_s_file(results):
  found = [line for line in results['deprecated'] if 'partial_run' in line]
  assert len(found) == 2 and all('asked.py:' in line for line in found), found


def test_ignored(results):
  assert results['lifted'] != ['CPU:1']


def test_missing_device_is_one_warning(results):
  found = [line for line in results['function_lines'] if 'GPU:3' in line]
  assert len(found) == 1
  assert found[0].startswith(
      'tf.device asks for GPU:3, which this program does not have (first by "')


def test_scopes_of_ours_and_of_optimizers_ask_for_nothing(results):
  assert results['unasked'] == ['', '']
