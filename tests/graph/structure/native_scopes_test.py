import dataclasses

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from gdp_grappler.graph.structure import native_scopes
from helpers import naive_scopes

# What the rules know, and what looks like it.
_PARTS = st.one_of(
    st.sampled_from([
        'gradients', 'gradient', 'gradients_1', 'gradient_tape', 'gradients1',
        'gradient_tape_2', '_grad', 'mul_grad', 'mul', 'layer', 'layer1',
        'layer_1', 'layer_1_2', 'layer1_', '1', '1_2', '_1', '1_2_3', 'train',
        'train2', '', '-', 'a-b', 'a_-3', 'layer-1', 'a\n1', '007', '9' * 12,
        'x' * 199 + '1', 'x' * 200 + '1', 'é' * 150 + '1', 'é٣', '\ud800', '\0'
    ]), st.text('ab1_', max_size=4))
_NAMES = st.lists(
    st.lists(
        st.tuples(_PARTS, st.sampled_from('//.')),
        max_size=10).map(lambda parts: ''.join(p + s for p, s in parts) + 'op'),
    max_size=12)


@hypothesis.settings(deadline=None)
@hypothesis.given(_NAMES)
def test_reads_scopes_as_the_naive_way(names):
  found, expected = native_scopes.read(names), naive_scopes.read(names)
  for field in dataclasses.fields(found):
    np.testing.assert_array_equal(getattr(found, field.name),
                                  getattr(expected, field.name), field.name)


@hypothesis.settings(deadline=None)
@hypothesis.given(_NAMES)
def test_finds_gradients_as_the_naive_way(names):
  names += [f'gradients/{name}_grad/x' for name in names]
  names += [f'gradient_tape/{name}/x' for name in names]
  np.testing.assert_array_equal(
      native_scopes.read(names).forward_ops,
      naive_scopes.read(names).forward_ops)


@hypothesis.settings(deadline=None)
@hypothesis.given(_NAMES)
def test_ranks_levels_as_the_naive_way(names):
  depths, wrappers = (5, 4, 3, 2, 1), ('gradient', 'train')
  np.testing.assert_array_equal(native_scopes.levels(names, depths, wrappers),
                                naive_scopes.levels(names, depths, wrappers))


def test_levels_are_in_alphabetical_order_of_whole_scopes():
  # '-' is before '/' and 'a' before 'a-'.
  found = native_scopes.levels(['a/b/x', 'a-/x', 'a/x'], (2, 1), ())
  assert found.tolist() == [[2, 1, 0], [0, 1, 0]]


@pytest.mark.parametrize('names', [[], ['x'], ['']])
def test_names_without_scopes(names):
  found = native_scopes.read(names)
  assert found.scopes.tolist() == [0] * len(names)
  assert found.parents.tolist() == [0]
  assert not native_scopes.levels(names, (1,), ()).any()
