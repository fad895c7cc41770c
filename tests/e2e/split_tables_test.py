"""A model whose table no card holds trains in parts, in fresh interpreters."""

import pytest

from helpers import fresh

pytestmark = pytest.mark.e2e


@pytest.fixture(scope='module', name='program')
def _program(tmp_path_factory):
  return fresh.run('split_tables.py', str(tmp_path_factory.mktemp('on')))


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


def test_numbers_and_weights_are_those_of_the_whole(program, tmp_path):
  off = fresh.run('split_tables.py', str(tmp_path), 'off').results
  on = program.results
  assert not off['parts']
  assert on['shapes'] == off['shapes']
  for name in ('losses', 'evaluated', 'sums'):
    assert on[name] == pytest.approx(off[name], rel=1e-6)
