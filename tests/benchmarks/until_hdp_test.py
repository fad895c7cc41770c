"""How soon we are as good as HDP: the program that says so."""

import json

import pytest

from helpers import benchmarks


@pytest.fixture(name='program')
def _program():
  return benchmarks.module('until_hdp')


def test_we_are_as_good_before_long(program, capsys):
  assert program.main([
      '--json', '--seconds=1', '--seeds=1', '--quiet',
      'wavenet-2x18@tiny@2xP100'
  ]) == 0
  row, = json.loads(capsys.readouterr().out)
  assert (row['task'], row['seed']) == ('wavenet-2x18@tiny@2xP100', 0)
  assert 0 < row['ours_s'] <= row['hdp_s'] < 1
  assert row['hdp_priced'] >= 1 and row['ours_priced'] >= 1
  assert row['hdp_took_s'] > 0 and row['ours_took_s'] > 0


def test_who_never_gets_there_is_told(program):
  row = {
      'task': 'task', 'seed': 0, 'hdp_s': .1, 'hdp_priced': 3, 'hdp_took_s': 1.,
      'ours_s': None, 'ours_priced': None, 'ours_took_s': None
  }
  cells = program._table([[row]]).cells
  assert 'never' in cells[0] and 'never' in cells[1]


def test_one_seed_that_never_gets_there_does_not_hide_the_others(program):
  """All figures were "never" as soon as one search failed."""
  row = {
      'task': 'task', 'hdp_s': .1, 'hdp_priced': 30, 'hdp_took_s': 8.,
      'ours_s': .1, 'ours_priced': 3, 'ours_took_s': 2.
  }
  late = {**row, 'ours_s': None, 'ours_priced': None, 'ours_took_s': None}
  cells, mean = program._table([[row, late]]).cells
  assert cells == [
      'task', '100.0 ms', '30', '8.0', '3', '2.00', '10.0 (1 of 2)', '10.0',
      '10.0', '4.0'
  ]
  assert mean[6:] == cells[6:]
