"""What placers find in little time and in much: the program that says so."""

import json

from helpers import benchmarks

budgets = benchmarks.module('budgets')


def _arguments(*further: str) -> list[str]:
  return [
      *further, '--quiet', '--seeds=1', '--seconds=1,0.2',
      '--placers=gdp,gpu_only', 'wavenet-2x18@tiny@2xP100'
  ]


def test_a_row_says_what_a_placer_finds_in_its_time(capsys):
  assert budgets.main(_arguments('--json')) == 0
  rows = json.loads(capsys.readouterr().out)
  assert [(row['placer'], row['budget_s']) for row in rows
         ] == [('gdp', .2), ('gdp', 1.), ('gpu_only', .2), ('gpu_only', 1.)]
  steps = [row['step_s'] for row in rows]
  assert steps[2] == steps[3]
  assert 0 < min(steps[:2]) and max(steps[:2]) <= steps[2]
  assert all(row['taken_s'] > 0 for row in rows)


def test_the_table_compares_placers_and_budgets():
  steps = {('a', 1.): 2., ('a', 3.): 1., ('a', 9.): 1.5, ('b', 1.): 4.,
           ('b', 3.): 4., ('b', 9.): 3.}
  rows = [{
      'task': 'one', 'seed': 0, 'placer': placer, 'budget_s': budget,
      'step_s': step, 'taken_s': 1.
  } for (placer, budget), step in steps.items()]
  table = budgets._table([rows], ('a', 'b'), (1., 3., 9.))
  assert table.cells == [
      ['one', '2000.0 ms', '1000.0 ms', '1500.0 ms'],
      ['b / a', '2.000', '4.000', '2.000'],
      ['b / a, least', '2.000', '4.000', '2.000'],
      ['b / a, most', '2.000', '4.000', '2.000'],
      ['over less time, most', '1.000', '0.500', '1.500'],
  ]


def test_a_step_that_exceeds_a_memory_has_a_ratio():
  """The program ended with an error, because a mean of 0 does not exist."""
  rows = [{
      'task': 'one', 'seed': 0, 'placer': placer, 'budget_s': 1.,
      'step_s': step_s, 'taken_s': 1.
  } for placer, step_s in (('a', float('inf')), ('b', 2.))]
  table = budgets._table([rows], ('a', 'b'), (1.,))
  assert table.cells == [['one', 'out of memory'], ['b / a', '0.000'],
                         ['b / a, least', '0.000'], ['b / a, most', '0.000'],
                         ['over less time, most', '-']]
