"""How soon we are as good as HDP: the program that says so."""

import importlib
import json
import pathlib
import types

import pytest


@pytest.fixture(name='program')
def _program(monkeypatch) -> types.ModuleType:
  """Programs of `benchmarks` are installed nowhere."""
  monkeypatch.syspath_prepend(str(pathlib.Path(__file__).parents[2]))
  return importlib.import_module('benchmarks.until_hdp')


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
