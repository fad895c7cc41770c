"""A model trains with a table that no card can hold, in fresh interpreters."""

import pytest

from helpers import fresh

pytestmark = pytest.mark.e2e


@pytest.fixture(scope='module', name='keras', params=['0', '1'],
                ids=['keras', 'tf_keras'])
def _keras(request):
  return {'TF_USE_LEGACY_KERAS': request.param}


@pytest.fixture(scope='module', name='program')
def _program(keras, tmp_path_factory):
  folder = str(tmp_path_factory.mktemp('on'))
  return fresh.run('split_tables.py', folder, **keras)


def test_the_table_is_split_and_a_line_says_so(program):
  said = [line for line in program.notices if 'table of "words"' in line]
  assert len(said) == 1 and 'is made in 6 parts' in said[0]
  assert len(program.results['parts']) == 6


def test_parts_are_on_several_devices_which_hold_them(program):
  found = program.results
  assert len(set(found['parts'])) > 1
  for device, size in found['bytes'].items():
    assert size < (found['host_bytes']
                   if device == 'CPU:0' else found['card_bytes'])


def test_numbers_and_weights_are_those_of_the_whole(program, keras, tmp_path):
  off = fresh.run('split_tables.py', str(tmp_path), 'off', **keras).results
  on = program.results
  mapped = fresh.run('split_tables.py', str(tmp_path), 'mapped',
                     **keras).results
  assert mapped['losses'] == pytest.approx(off['losses'], rel=1e-6)
  assert mapped['parts'] == ['CPU:0', 'CPU:1', 'CPU:2']
  assert not off['parts']
  assert on['shapes'] == off['shapes']
  for name in ('losses', 'evaluated', 'sums', 'loaded'):
    assert on[name] == pytest.approx(off[name], rel=1e-6)
  if keras['TF_USE_LEGACY_KERAS'] == '1':
    assert on['checkpoint'] == off['checkpoint']


def test_a_table_that_cannot_be_split_trains_whole_and_a_line_says_why(
    keras, tmp_path):
  whole = fresh.run('split_tables.py', str(tmp_path), 'whole', **keras)
  assert not whole.results['parts'] and len(whole.results['losses']) == 2
  said = [line for line in whole.notices if 'table of "words"' in line]
  assert len(said) == 1 and 'stays whole: its constraint MaxNorm' in said[0]
