"""Tests of `gdp place --repeatable`."""

import json
import pathlib
import time

import pytest

from gdp_grappler.bin import gdp
from gdp_grappler.evaluation import robust_evaluator
from gdp_grappler.placers import best_of

_GRAPH = str(pathlib.Path(__file__).parents[1] / 'testdata/lstm_train_step.pb')
# What one placement takes longer on the machine that is slow.
_SLOWER_S = .001


def _place(path, *options):
  assert gdp.run([
      'place', _GRAPH, '--cluster=2xP100', '--quiet', f'--output={path}',
      *options
  ]) == 0
  return path.read_bytes()


@pytest.mark.parametrize('options', [
    ['--placer=gdp', '--order=critical_path', '--seed=3'],
    ['--placer=local_search'],
    ['--placer=best_of'],
], ids=lambda options: options[0])
def test_a_slow_machine_writes_the_same_plan(tmp_path, monkeypatch, options):
  monkeypatch.setattr(best_of, 'DEFAULT_NAMES',
                      ('single_device', 'metis', 'm_etf', 'hierarchical'))
  options = [*options, '--repeatable', '--time_budget_s=.2']
  quick = _place(tmp_path / 'quick.json', *options)
  stock = robust_evaluator.Robust.price_groups

  def slow(*arguments, **named):
    time.sleep(_SLOWER_S)
    return stock(*arguments, **named)

  monkeypatch.setattr(robust_evaluator.Robust, 'price_groups', slow)
  assert _place(tmp_path / 'slow.json', *options) == quick


def test_the_budget_still_says_how_much_is_searched(tmp_path, monkeypatch):
  priced = []
  stock = robust_evaluator.Robust.price_groups

  def counted(simulator, graph, devices, *arguments, **named):
    priced.append(len(devices))
    return stock(simulator, graph, devices, *arguments, **named)

  monkeypatch.setattr(robust_evaluator.Robust, 'price_groups', counted)
  totals = []
  for budget_s in (.1, .4):
    priced.clear()
    _place(tmp_path / 'plan.json', '--placer=local_search', '--repeatable',
           f'--time_budget_s={budget_s}')
    totals.append(sum(priced))
  assert 2 * totals[0] < totals[1]


def test_a_plan_tells_no_time(tmp_path):
  fields = json.loads(_place(tmp_path / 'plan.json', '--placer=metis'))
  assert set(fields) == {
      'format', 'version', 'graph', 'fingerprint', 'cluster', 'devices',
      'placed_by', 'tables', 'digest'
  }
