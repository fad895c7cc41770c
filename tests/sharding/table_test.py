import keras
import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler.sharding import choice
from gdp_grappler.sharding import table as table_lib

_WHOLE = np.arange(12, dtype=np.float32).reshape(4, 3)


def _table(axis=0):
  ends = [(0, 3), (3, 4)] if axis == 0 else [(0, 2), (2, 3)]
  values = [_WHOLE[a:b] if axis == 0 else _WHOLE[:, a:b] for a, b in ends]
  parts = [
      keras.Variable(value, name=f'kernel{choice.PART}{i}')
      for i, value in enumerate(values)
  ]
  table = table_lib.Table('kernel', axis, parts)
  for i, part in enumerate(parts):
    table_lib.mark(part, table_lib.Part(table, i))
  return table


@pytest.mark.parametrize('axis', [0, 1])
def test_it_looks_like_one_variable(axis):
  table = _table(axis)
  assert (table.shape, table.ndim, table.dtype) == ((4, 3), 2, 'float32')
  for value in (table.numpy(), np.asarray(table), tf.convert_to_tensor(table),
                keras.ops.convert_to_numpy(table)):
    np.testing.assert_array_equal(value, _WHOLE)
  table.assign(2 * _WHOLE)
  np.testing.assert_array_equal(table.value, 2 * _WHOLE)
  assert 'parts=2' in repr(table)


def test_a_value_of_another_shape_is_refused():
  with pytest.raises(ValueError, match=r'shape \(4, 3\)'):
    _table().assign(np.zeros((3, 4)))


def test_all_parts_are_trained_or_none():
  table = _table()
  assert table.trainable
  table.trainable = False
  assert not any(part.trainable for part in table.parts)


def test_parts_are_joined_where_the_whole_would_have_been():
  table, other = _table(), keras.Variable(1.)
  slots = []
  for i in range(2):
    for slot in ('m', 'v'):
      variable = keras.Variable(np.full(table.parts[i].shape, i))
      table_lib.mark(variable, table_lib.Part(table, i, slot))
      slots.append(variable)
  joined = table_lib.joined([other, *table.parts, *slots])
  assert joined[:2] == [other, table]
  assert [w.name for w in joined[2:]] == ['kernel_m', 'kernel_v']
  assert [w.shape for w in joined[2:]] == [(4, 3)] * 2
  assert table_lib.part_of(other) is None


@pytest.mark.parametrize('axis', [0, 1])
@pytest.mark.parametrize('compute', [
    lambda w: w[0:2], lambda w: w[..., 1], lambda w: w * 2, lambda w: 2 - w,
    lambda w: -w, lambda w: w / 2, lambda w: w > 3, lambda w: w @ np.ones(
        (3, 2), np.float32), lambda w: abs(w)**2
])
def test_it_is_computed_with_like_one_variable(axis, compute):
  np.testing.assert_allclose(compute(_table(axis)), compute(_WHOLE))


@pytest.mark.parametrize('axis', [0, 1])
def test_it_is_assigned_to_like_one_variable(axis):
  table = _table(axis)
  table.assign_add(np.ones((4, 3), np.float32))
  np.testing.assert_array_equal(table.value, _WHOLE + 1)
  table.assign_sub(_WHOLE)
  np.testing.assert_array_equal(table.value, np.ones((4, 3)))
  table.assign((2 * _WHOLE).tolist())
  np.testing.assert_array_equal(table.value, 2 * _WHOLE)


def test_a_table_is_trained_through_its_slices():
  table = _table()
  with tf.GradientTape() as tape:
    loss = tf.reduce_sum(table[2:] * 3)
  first, last = tape.gradient(loss, [part.value for part in table.parts])
  np.testing.assert_array_equal(first, [[0] * 3] * 2 + [[3] * 3])
  np.testing.assert_array_equal(last, [[3] * 3])
