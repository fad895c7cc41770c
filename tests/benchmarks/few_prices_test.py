"""What few prices bring: the program that says so."""

import importlib
import json
import pathlib
import types

import pytest


@pytest.fixture(name='program')
def _program(monkeypatch) -> types.ModuleType:
  """Programs of `benchmarks` are installed nowhere."""
  monkeypatch.syspath_prepend(str(pathlib.Path(__file__).parents[2]))
  return importlib.import_module('benchmarks.few_prices')


def test_searches_stand_beside_the_best_that_does_not_search(program, capsys):
  assert program.main([
      '--json', '--priced=64', '--seeds=2', '--quiet',
      'wavenet-2x18@tiny@2xP100'
  ]) == 0
  rows = json.loads(capsys.readouterr().out)
  assert [row['seed'] for row in rows] == [0, 1]
  assert len({row['best_of_s'] for row in rows}) == 1
  for row in rows:
    assert 0 < row['chosen_s'] < 1 and 0 < row['plain_s'] < 1
