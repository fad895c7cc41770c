"""Arithmetic on known values; `values_test` compares it with TensorFlow's."""

import math
import operator

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import numpy as np
import pytest

from gdp_grappler.graph.control_flow import arithmetic
from helpers import graph_defs

_HOLDS = {
    'Less': operator.lt, 'LessEqual': operator.le, 'Greater': operator.gt,
    'GreaterEqual': operator.ge, 'NotEqual': operator.ne
}
_numbers = st.integers(-9, 9)


def _value(array, varies=False):
  return arithmetic.Value(np.asarray(array, np.float64), varies)


def _apply(op, *arrays, **attributes):
  found = arithmetic.apply(graph_defs.node('n', op, **attributes),
                           [_value(array) for array in arrays])
  return None if found is None else found.array.tolist()


@settings(max_examples=50, deadline=None)
@given(kind=st.sampled_from(sorted(_HOLDS)), a=_numbers, a_step=_numbers,
       b=_numbers, b_step=_numbers)
def test_a_comparison_holds_as_often_as_counted(kind, a, a_step, b, b_step):
  counted = 0
  while counted < 50 and _HOLDS[kind](a + counted * a_step,
                                      b + counted * b_step):
    counted += 1
  found = arithmetic.crossing(kind, (_value(a), _value(a_step)),
                              (_value(b), _value(b_step)))
  assert float(found.array) == (math.inf if counted == 50 else counted)
  assert not found.varies


@settings(max_examples=50, deadline=None)
@given(kind=st.sampled_from(sorted(arithmetic.OPPOSITE)), a=_numbers,
       b=_numbers)
def test_the_opposite_holds_where_it_does_not(kind, a, b):
  opposite = arithmetic.OPPOSITE[kind]
  assert _apply(kind, a, b) != _apply(opposite, a, b)


def test_a_mean_need_not_be_whole():
  # 0, 1, 2 .. below 2.5 in the mean: between 2 and 3 iterations.
  limit = _value(2.5, varies=True)
  found = arithmetic.crossing('Less', (_value(0), _value(1)),
                              (limit, _value(0)))
  assert float(found.array) == 2.5 and found.varies
  found = arithmetic.crossing('LessEqual', (_value(0), _value(1)),
                              (limit, _value(0)))
  assert float(found.array) == 3.5


@pytest.mark.parametrize('op, a, b', [('RealDiv', 1, 0), ('FloorDiv', 1, 0),
                                      ('FloorMod', 1, 0),
                                      ('Mul', 1e200, 1e200)])
def test_what_is_no_finite_number_is_not_known(op, a, b):
  """Users saw a RuntimeWarning of numpy."""
  with pytest.raises(ArithmeticError):
    _apply(op, a, b)


@pytest.mark.parametrize('op, known', [('AddV2', True), ('Sub', True),
                                       ('Mul', False), ('Maximum', False),
                                       ('Less', False)])
def test_of_values_that_vary_only_what_is_linear_is_known(op, known):
  both = [_value(3, varies=True)] * 2
  found = arithmetic.apply(graph_defs.node('n', op), both)
  assert (found is not None) == known
  assert found is None or found.varies


def test_a_product_with_what_does_not_vary_is_linear():
  found = arithmetic.apply(
      graph_defs.node('n', 'Mul'),
      [_value(2.5, varies=True), _value(2)])
  assert float(found.array) == 5. and found.varies


def test_slices_of_shapes():
  masks = {'begin_mask': {'i': 0}, 'end_mask': {'i': 0}}
  assert _apply('StridedSlice', [5, 6, 7], [1], [2], [1],
                shrink_axis_mask={'i': 1}, **masks) == 6
  assert _apply('StridedSlice', [5, 6, 7], [-1], [0], [1],
                shrink_axis_mask={'i': 1}, **masks) == 7
  assert _apply('StridedSlice', [5, 6, 7], [1], [3], [1], **masks) == [6, 7]
  assert _apply('StridedSlice', [5, 6, 7], [9], [9], [-1], begin_mask={'i': 1},
                end_mask={'i': 1}) == [7, 6, 5]
  # Of matrices, or with new axes, nothing is known.
  assert _apply('StridedSlice', [[5, 6]], [0], [1], [1], **masks) is None
  assert _apply('StridedSlice', [5, 6], [0], [1], [1],
                new_axis_mask={'i': 1}) is None


@pytest.mark.parametrize('op, inputs',
                         [('Sum', ([5, 6], 0)), ('Pack', (5, 6)),
                          ('Squeeze', ([5],)), ('GatherV2', ([5, 6], [1], 0)),
                          ('StridedSlice', ([5, 6], [0], [1], [1]))])
def test_attributes_that_are_left_out_stay_so(op, inputs):
  """Empty attributes were written into the user's graph."""
  node = graph_defs.node('n', op)
  assert arithmetic.apply(node, [_value(array) for array in inputs])
  assert not node.attr


def test_ops_of_which_nothing_is_known():
  assert _apply('Sin', 1) is None


def test_malformed_ops_raise_what_callers_expect():
  with pytest.raises((ArithmeticError, IndexError, TypeError, ValueError)):
    _apply('AddV2', 1)
