"""Inference over the parts of a card, which two logical CPUs stand for."""

import pytest

from helpers import fresh

pytestmark = pytest.mark.e2e


@pytest.fixture(scope='module', name='program', params=['0', '1'],
                ids=['keras', 'tf_keras'])
def _program(request):
  return fresh.run('served.py', TF_USE_LEGACY_KERAS=request.param)


@pytest.mark.parametrize(
    'name', ['predict', 'function', 'signature', 'relocated', 'fitted'])
def test_it_runs_on_both_and_its_numbers_stay(program, name):
  found = program.results[name]
  assert found['equal']
  assert set(found['devices']) == {'CPU:0', 'CPU:1'}


def test_weights_of_a_saved_model_can_be_moved(program):
  assert program.results['relocated']['moved'] == 6


def test_lines_say_what_was_placed(program):
  lines = program.results['lines']
  assert any(line.startswith('predict of "') for line in lines)
  assert not [line for line in lines if 'arning' in line]
