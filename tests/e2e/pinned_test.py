"""Pins of users reach the pass."""

import numpy as np
import pytest

from helpers import programs

pytestmark = pytest.mark.e2e
_ONE, _TWO = '/device:CPU:1', '/job:localhost/replica:0/task:0/device:CPU:2'

results = programs.results('pinned.py')


@pytest.mark.parametrize(
    'op, expected',
    [
        ('Cos', [_ONE, False]),
        ('Tanh', [_ONE, False]),  # In the body of a loop.
        ('Sinh', [_ONE, False]),  # In a branch.
        ('Atan', [_TWO, False]),  # In an inner scope.
        ('Erf', ['', True]),  # In an inner scope of the other kind.
        ('Asin', [_ONE, False]),  # In a function traced inside.
        ('Softplus', ['', True]),
        ('Exp', ['', False]),  # Outside.
    ])
def test_function(results, op, expected):
  assert results['function'][op] == expected


def test_keras_layer(results):
  assert results['pinned_layer'] == {'Elu': ['/device:CPU:2', False]}


def test_a_graph_of_fewer_ops_than_min_ops(results):
  """Once pins of graphs of fewer than 16 ops were ignored."""
  assert results['small'] == {'Asinh': [_ONE, False]}


def test_function_traced_in_an_eager_scope(results):
  assert results['traced_inside'] == {'Sin': [_ONE, False]}


def test_no_effect_on_eager_execution(results):
  np.testing.assert_allclose(results['eager'], np.sin(1.) * 8, rtol=1e-6)
