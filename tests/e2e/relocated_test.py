"""Variables that move during `fit`, and all that must not notice."""

import pytest

from helpers import fresh

pytestmark = pytest.mark.e2e
_MOVING = ('fit_evaluate_predict', 'traced_before', 'shared_layers',
           'nested_fit', 'files', 'averages', 'accumulation', 'from_dataset',
           'error_in_the_middle', 'own_loop', 'rebuilt', 'switched',
           'fit_evaluate_predict_guarded', 'planned')
_STAYING = ('eagerly',)


@pytest.fixture(scope='module', params=['', '1'], ids=['keras_3', 'tf_keras'])
def program(request):
  variables = {'TF_USE_LEGACY_KERAS': '1'} if request.param else {}
  return fresh.run('relocated.py', **variables)


@pytest.mark.parametrize('name', _MOVING + _STAYING)
def test_results_are_those_without_placement(program, name):
  assert program.results[name]['equal']


@pytest.mark.parametrize('name', _MOVING)
def test_variables_were_elsewhere(program, name):
  assert len(program.results[name]['devices']) > 1


def test_layers_have_their_weights_where_the_plan_says(program):
  where = program.results['planned']['where']
  assert where['Dense'] == ['CPU:1']
  assert where['BatchNormalization'] == ['CPU:2']


def test_every_fit_is_explained(program):
  text = '\n'.join(program.notices)
  assert 'variables moved' in text
  assert 'runs op by op' in text
  assert 'Warning' not in text


def test_the_guard_says_both_times(program):
  lines = [l for l in program.notices if 'measured' in l]
  if program.results['keras'].startswith('2.'):
    # Its dropout would begin anew, so that it is placed at once.
    assert not lines
    return
  line, = lines
  assert 'ms as it was' in line and 'ms placed' in line
  assert line.endswith(('stays placed', 'goes back to what it was'))


def test_all_memory_of_variables_that_moved_is_freed(program):
  assert program.results['memory']['freed']
