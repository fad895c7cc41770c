"""What each lever brings: the program that says so."""

import importlib
import json
import pathlib
import types

import pytest

from gdp_grappler.placers.search import priority_annealing


@pytest.fixture(name='program')
def _program(monkeypatch) -> types.ModuleType:
  """Programs of `benchmarks` are installed nowhere."""
  monkeypatch.syspath_prepend(str(pathlib.Path(__file__).parents[2]))
  return importlib.import_module('benchmarks.levers')


def test_each_lever_is_switched_off(program, capsys):
  assert program.main([
      '--json', '--seconds=0.3', '--seeds=2', '--quiet',
      'wavenet-2x18@tiny@2xP100'
  ]) == 0
  rows = json.loads(capsys.readouterr().out)
  assert [row['seed'] for row in rows] == [0, 1]
  for row in rows:
    steps = {name: row[f'{name}_s'] for name in program._WAYS}
    assert all(0 < step < 1 for step in steps.values())
    # A search begins with the anchors; edges differ by little.
    assert steps['all'] <= 1.02 * steps['search']
  assert len({row['search_s'] for row in rows}) == 1


def test_orders_are_searched_for_where_priorities_are_a_lever(
    program, monkeypatch):
  """It was the search first in, first out, whatever was switched off."""
  made = []
  stock = priority_annealing.PriorityAnnealing
  monkeypatch.setattr(
      priority_annealing, 'PriorityAnnealing', lambda *arguments:
      (made.append(arguments), stock(*arguments))[1])
  assert program.main([
      '--json', '--seconds=0.1', '--seeds=1', '--quiet',
      'wavenet-2x18@tiny@2xP100'
  ]) == 0
  # With all levers, and without each but priorities and the search.
  assert len(made) == len(program._WAYS) - 2
  models = [model for _, _, _, model, *_ in made]
  assert models[1] is None and models[2].draws == 1
