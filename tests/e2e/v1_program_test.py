"""TensorFlow 1 behaviour: the placer still has an eager context."""

import pytest

from helpers import fresh

pytestmark = pytest.mark.e2e


def test_eager_placer_serves_a_program_without_eager_execution():
  finished = fresh.run('v1_program.py')
  stock, placed = finished.results['stock'], finished.results['placed']
  notice, = finished.notices
  assert notice.startswith('[gdp] placed; ')
  assert set(stock['devices']) == {'CPU:0'}
  assert set(placed['devices']) == {'CPU:0', 'CPU:1'}
  assert placed['value'] == stock['value']
