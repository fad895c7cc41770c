"""Variables move during `fit`, and other features of Keras still work."""

import pytest

from helpers import programs

pytestmark = pytest.mark.e2e
# Keras 3 and tf_keras have separate code for these cases. The other cases run
# with Keras 3 only.
_IN_BOTH = ('fit_evaluate_predict', 'traced_before', 'shared_layers', 'files',
            'averages', 'own_loop', 'made_again', 'switched',
            'read_by_a_dataset', 'shifted', 'guarded', 'planned')
_IN_KERAS_3 = ('nested_fit', 'accumulation', 'from_dataset',
               'error_in_the_middle', 'compiled_by_xla', 'compiled_again')
keras_3, tf_keras, program = programs.of_both_keras('relocated.py')


def _check(result):
  assert result['equal']
  assert len(result['devices']) > 1


@pytest.mark.parametrize('name', _IN_BOTH)
def test_results_are_those_without_placement(program, name):
  _check(program.results[name])


@pytest.mark.parametrize('name', _IN_KERAS_3)
def test_results_in_keras_3_are_those_without_placement(keras_3, name):
  _check(keras_3.results[name])


def test_what_runs_op_by_op_stays(keras_3):
  assert keras_3.results['eagerly']['equal']
  assert 'runs op by op' in '\n'.join(keras_3.notices)


def test_what_goes_back_for_xla_is_told(keras_3):
  text = '\n'.join(keras_3.notices)
  assert 'variables that were moved go back: XLA compiles it for one' in text
  assert 'stay where they are: a function uses them that XLA compiles' in text


def test_layers_have_their_weights_where_the_plan_says(program):
  where = program.results['planned']['where']
  assert where['Dense'] == ['CPU:1']
  assert where['BatchNormalization'] == ['CPU:2']


def test_every_fit_is_explained(program):
  text = '\n'.join(program.notices)
  assert 'variables moved' in text
  assert 'Warning' not in text


def test_the_guard_says_both_times(program):
  lines = [l for l in program.notices if 'measured' in l]
  if program.results['keras'].startswith('2.'):
    # Timing would restart the random stream of tf_keras' dropout. So the step
    # is placed without a guard.
    assert not lines
    return
  line, = lines
  assert 'ms as it was' in line and 'ms placed' in line
  assert ': stays placed; ' in line or ': goes back to what it was; ' in line
  assert line.endswith(
      ' ms spent on moving variables and building the placed step')


def test_all_memory_of_variables_that_moved_is_freed(keras_3):
  assert keras_3.results['memory']['freed']
