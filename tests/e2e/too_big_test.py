"""A model that no card holds trains on two, in a fresh interpreter."""

import pytest

from helpers import fresh

pytestmark = pytest.mark.e2e


@pytest.fixture(scope='module', name='program')
def _program(tmp_path_factory):
  return fresh.run('too_big.py', str(tmp_path_factory.mktemp('on')))


def test_weights_are_made_on_the_host(program):
  assert set(program.results['made']) == {'CPU:0'}


def test_variables_are_where_they_have_room(program):
  found = program.results
  assert sum(found['bytes'].values()) > 1.3 * found['card_bytes']
  for device in ('CPU:1', 'CPU:2'):
    assert 0 < found['bytes'][device] < found['card_bytes']
  assert found['bytes'].get('CPU:0', 0) < found['host_bytes']


def test_no_step_runs_where_it_would_exceed_a_memory(program):
  planned = [line for line in program.notices if 'variables moved' in line]
  assert len(planned) == 1 and 'would have exceeded a memory' in planned[0]
  assert not [line for line in program.notices if 'to compare' in line]


def test_losses_and_what_is_saved_equal_those_without_us(program, tmp_path):
  off = fresh.run('too_big.py', str(tmp_path), 'off').results
  on = program.results
  for name in ('losses', 'evaluated', 'loaded'):
    assert on[name] == off[name]
  assert on['loaded'] == on['evaluated']
  # Without the plugin, all weights are made on the first card.
  assert set(off['made']) == {'CPU:1'}
