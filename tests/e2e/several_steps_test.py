"""Keras' `steps_per_execution`, and several threads."""

import pytest

from helpers import programs

pytestmark = pytest.mark.e2e
keras_3, tf_keras, program = programs.of_both_keras('several_steps.py')


@pytest.mark.parametrize('name', ['uneven', 'switched', 'by_chance'])
def test_results_are_those_without_placement(program, name):
  assert program.results[name]['equal']


def test_losses_of_outputs_are_those_without_placement(keras_3):
  """Steps run one by one know the batch size; in Keras' loop it is unknown."""
  assert keras_3.results['of_two_shapes']['equal']
  assert len(keras_3.results['of_two_shapes']['devices']) > 1


@pytest.mark.parametrize('name', ['uneven_guarded', 'threads'])
def test_results_in_keras_3_are_those_without_placement(keras_3, name):
  assert keras_3.results[name]['equal']


# These cases have no guard, which might move the variables back.
@pytest.mark.parametrize('name', ['uneven', 'switched'])
def test_variables_were_elsewhere(program, name):
  is_loop = program.results['keras'].startswith('2.')
  assert (len(program.results[name]['devices']) > 1) != is_loop


def test_what_other_threads_run_is_not_cancelled(keras_3):
  assert len(keras_3.results['threads']['devices']) > 1


def test_lines_say_what_became_of_it(program):
  assert not [l for l in program.notices if 'Warning' in l]
  if program.results['keras'].startswith('3.'):
    line, = (l for l in program.notices if 'measured, medians' in l)
    assert 'calls of 3 steps' in line
    assert sum('has stateful random ops' in l for l in program.notices) == 1
