"""What few prices bring: the program that says so."""

import itertools
import json
import types

import pytest

from helpers import benchmarks

few_prices = benchmarks.module('few_prices')


def test_searches_stand_beside_the_best_that_does_not_search(capsys):
  assert few_prices.main([
      '--json', '--priced=64', '--seeds=2', '--quiet',
      'wavenet-2x18@tiny@2xP100'
  ]) == 0
  rows = json.loads(capsys.readouterr().out)
  assert [row['seed'] for row in rows] == [0, 1]
  assert len({row['best_of_s'] for row in rows}) == 1
  for row in rows:
    assert 0 < row['chosen_s'] < 1 and 0 < row['plain_s'] < 1


def test_what_the_policy_costs_is_told_by_part(capsys):
  tasks = ['wavenet-2x18@tiny@2xP100', 'rnnlm-2@tiny@2xP100']
  assert few_prices.main(['--json', '--cost', '--seeds=1', '--quiet',
                          *tasks]) == 0
  rows = json.loads(capsys.readouterr().out)
  assert [row['task'] for row in rows] == tasks
  for row in rows:
    parts = [row[name] for name in row if name[-2:] == '_s' and name != 'all_s']
    assert row['prices_s'] > 0 and row['features_s'] > 0
    assert sum(parts) == pytest.approx(row['all_s'])


def test_clocks_count_a_function_within_another_once(monkeypatch):
  owner = types.SimpleNamespace(outer=lambda: owner.middle(),
                                middle=lambda: owner.inner(), inner=lambda: 7)
  part_times = benchmarks.module('part_times')
  # Each look at the clock is a second after the one before.
  clock = types.SimpleNamespace(process_time=itertools.count().__next__)
  monkeypatch.setattr(part_times, 'time', clock)
  before = owner.inner
  with part_times.clocked(
      {'a': [(owner, 'outer'), (owner, 'inner')],
       'b': [(owner, 'middle')]}) as s:
    assert owner.outer() == 7
  assert s == {'a': 3, 'b': 2}
  assert owner.inner is before
