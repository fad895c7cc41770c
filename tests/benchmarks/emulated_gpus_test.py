"""The table of plans that ran on emulated GPUs."""

import pytest

from gdp_grappler import environment
from helpers import benchmarks


@pytest.fixture(name='program')
def _program(monkeypatch):
  # The program sets them, too.
  for name, value in environment.without_plugin().items():
    monkeypatch.setenv(name, value)
  return benchmarks.module('emulated_gpus')


def _row(placer, *steps):
  keys = ('simulated_s', 'measured_s', 'ordered_simulated_s',
          'ordered_measured_s')
  return {'task': 'a', 'placer': placer, 'edges': 3, **dict(zip(keys, steps))}


def test_gains_are_over_the_plans_that_ran(program):
  """The program failed if a plan ran only with control edges."""
  rows = [
      _row('human_expert', 4., 4., 4., 2.),
      _row('m_etf', None, None, None, 3.),
      _row('heft', 1., 1., 1., 1.)
  ]
  cells = program._in_table(rows).cells
  assert cells[1] == ['a', 'm_etf', 'OOM', 'OOM', 'OOM', '3000.00']
  assert cells[3:] == [
      ['gain of human_expert, by control edges', *[''] * 4, '2.000x'],
      ['gain of heft, by control edges', *[''] * 4, '1.000x'],
      [
          'gain of least price, over the expert without control edges',
          *[''] * 4, '4.000x'
      ],
  ]


def test_without_an_order_there_are_no_gains(program):
  row = {'task': 'a', 'placer': 'm_etf', 'simulated_s': 1., 'measured_s': None}
  assert program._in_table([row]).cells == [['a', 'm_etf', '1000.00', 'OOM']]
