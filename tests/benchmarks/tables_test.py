"""Tables of steps, of which some exceed a memory."""

import json
import math

import pytest

from gdp_grappler.placers import step as step_lib
from gdp_grappler.processes import calls
from helpers import benchmarks
from helpers import clusters
from helpers import graphs

tables = benchmarks.module('tables')

_SEARCHES = {
    'few_prices': ('--priced=16',),
    'levers': ('--seconds=.05', '--levers=search'),
    'move_network': ('--seconds=.05',),
}


def _rows(*steps: tuple[float, float]):
  return [{'task': 'x', 'a_s': a, 'b_s': b} for a, b in steps]


def _shown(argv, find):
  options = tables.parser('name', None)
  return tables.show(tables.parse(options, ['--quiet', *argv]), 'Title', find)


def test_means_of_ratios():
  cells = tables.step_cells(
      [_rows(
          (2e-3, 1e-3),
          (8e-3, 1e-3)), _rows(
              (1e-3, 1e-3))], ('a_s', 'b_s'), ('b_s', 'a_s'), ('a_s', 'b_s'))
  assert cells == [
      ['x', '4.0 ms', '1.0 ms', '0.250', '4.000', '2.000', '8.000'],
      ['x', '1.0 ms', '1.0 ms', '1.000', '1.000', '1.000', '1.000'],
      ['geometric mean', '', '', '0.500', '2.000', '1.000', '4.000'],
  ]


@pytest.mark.parametrize('a_s, b_s, ratio', [(math.inf, 1., 'inf'),
                                             (1., math.inf, '0.000'),
                                             (math.inf, math.inf, '-')])
def test_ratios_of_steps_that_exceed_a_memory(a_s, b_s, ratio):
  """A mean of 0 was an error, and two such steps had the ratio "nan"."""
  row, mean = tables.step_cells([_rows((a_s, b_s))], ('a_s',), ('a_s', 'b_s'))
  assert row[2:] == mean[2:] == [ratio] * 3
  assert (row[1] == 'out of memory') == math.isinf(a_s)


@pytest.mark.parametrize('name', _SEARCHES)
def test_plans_that_do_not_fit_have_no_step(name, monkeypatch, capsys):
  """Their steps counted like those of plans that fit."""
  program = benchmarks.module(name)
  step = step_lib.Step(graphs.chain(4, 1000, flops=1.),
                       clusters.make_cluster(2, memory_bytes=100))
  monkeypatch.setattr(program.reading, 'check_task', lambda task: None)
  monkeypatch.setattr(program.reading, 'read_task', lambda *unused_args: step)
  assert program.main(
      ['a@b', '--json', '--seeds=1', '--quiet', *_SEARCHES[name]]) == 0
  row, = json.loads(capsys.readouterr().out)
  steps = [row[key] for key in row if key.endswith('_s')]
  assert steps and set(steps) == {None}


def test_json_has_no_infinities(capsys):
  """Infinity and NaN were in the output, and no standard has them in JSON."""
  row = {'a': math.inf, 'b': [math.nan, 1.5], 'c': 'x', 'd': None}
  assert not _shown(['--json'],
                    lambda: tables.Table('steps', ['a'], [['-']], [row]))
  assert json.loads(capsys.readouterr().out) == [{
      'a': None, 'b': [None, 1.5], 'c': 'x', 'd': None
  }]


def test_a_child_that_fails_is_one_line(capsys):
  """It was a traceback."""

  def find():
    raise calls.CallError('the child died')

  assert _shown([], find) == 2
  assert capsys.readouterr().err == 'name: error: the child died\n'
