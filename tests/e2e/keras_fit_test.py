"""Keras models, trained with placement in fresh interpreters."""

import pytest

from helpers import fresh

pytestmark = pytest.mark.e2e
# Dense layers alone are trained in `relocated_test`.
_MODELS = {'': ('cnn', 'lstm', 'transformer'), '1': ('cnn', 'lstm')}


@pytest.fixture(scope='module', params=['', '1'], ids=['keras_3', 'tf_keras'])
def program(request):
  variables = {'TF_USE_LEGACY_KERAS': '1'} if request.param else {}
  return request.param, fresh.run('fit.py', **variables)


@pytest.fixture
def models(program):
  """Returns the results of each model."""
  legacy, finished = program
  found = finished.results['fit']
  assert tuple(found) == _MODELS[legacy]
  return found.values()


def test_runs_the_keras_it_means(program):
  legacy, finished = program
  assert finished.results['keras'].startswith('2.' if legacy else '3.')


def test_train_steps_run_on_several_devices(models):
  for result in models:
    assert set(result['devices']) == {'CPU:0', 'CPU:1', 'CPU:2'}
    assert min(result['devices'].values()) > 10
    assert set(result['stock_devices']) == {'CPU:0'}


def test_losses_equal_those_of_an_unplaced_run(models):
  for result in models:
    assert len(result['stock']) == 2
    assert result['placed'] == result['stock']
  # One model was also made and traced without the option.
  (placed, traced), = ((result['placed'], result['made_anew'])
                       for result in models if 'made_anew' in result)
  assert placed == traced


def test_evaluate_and_predict_are_placed_and_right(program):
  stock, placed = program[1].results['inference']
  assert set(stock['evaluate']) == set(stock['predict']) == {'CPU:0'}
  assert len(placed['evaluate']) > 1 and len(placed['predict']) > 1
  assert placed['labels'] == stock['labels']
  assert placed['loss'] == stock['loss']


def test_says_one_line_per_placed_graph(program):
  legacy, finished = program
  lines = finished.notices
  train_steps = [l for l in lines if 'placed by random' in l]
  assert len(train_steps) >= len(_MODELS[legacy])
  assert len(lines) == len(set(lines))
  assert not [l for l in lines if 'Warning' in l]


def test_imports_nothing_that_training_needs(program):
  legacy, finished = program
  assert finished.results['imported'] == (['tf_keras'] if legacy else [])
