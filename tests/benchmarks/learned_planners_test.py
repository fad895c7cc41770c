"""HDP beside GDP-one: the program that compares them."""

import importlib
import json
import pathlib
import types

import pytest


@pytest.fixture(name='program')
def _program(monkeypatch) -> types.ModuleType:
  """Programs of `benchmarks` are installed nowhere."""
  monkeypatch.syspath_prepend(str(pathlib.Path(__file__).parents[2]))
  return importlib.import_module('benchmarks.learned_planners')


def test_both_planners_learn_each_task(program, capsys):
  assert program.main([
      '--json', '--seconds=.1', '--seeds=1', '--quiet',
      'wavenet-2x18@tiny@2xP100'
  ]) == 0
  row, = json.loads(capsys.readouterr().out)
  assert (row['task'], row['seed']) == ('wavenet-2x18@tiny@2xP100', 0)
  assert row['hdp_priced'] >= 4 and row['gdp_paper_priced'] >= 48
  assert 0 < row['hdp_s'] < 1 and 0 < row['gdp_paper_s'] < 1
