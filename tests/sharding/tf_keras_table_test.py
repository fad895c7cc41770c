import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler.sharding import tf_keras_table

_WHOLE = np.arange(12, dtype=np.float32).reshape(4, 3)


def _table(axis):
  values = np.array_split(_WHOLE, 2, axis)
  return tf_keras_table.Table([
      tf.Variable(value, name=f'head/kernel_part_{i}')
      for i, value in enumerate(values)
  ], axis)


@pytest.mark.parametrize('axis', [0, 1])
def test_it_looks_like_one_variable(axis):
  table = _table(axis)
  assert (table.name, table.shape, table.dtype) == ('head/kernel:0', (4, 3),
                                                    tf.float32)
  assert table.trainable and len(table.parts) == 2
  for value in (table.numpy(), np.asarray(table), tf.convert_to_tensor(table),
                table.value(), table[:, :], table + 0.):
    np.testing.assert_array_equal(value, _WHOLE)
  table.assign(2 * _WHOLE)
  np.testing.assert_array_equal(table.numpy(), 2 * _WHOLE)
  with pytest.raises(ValueError, match=r'shape \(4, 3\)'):
    table.assign(np.zeros((3, 4)))


@pytest.mark.parametrize('axis', [0, 1])
def test_a_checkpoint_takes_it_for_one_variable(axis, tmp_path):
  table, whole = _table(axis), tf.Variable(np.zeros((4, 3), 'f'))
  path = tf.train.Checkpoint(weight=table).write(str(tmp_path / 'parts'))
  tf.train.Checkpoint(weight=whole).restore(path)
  np.testing.assert_array_equal(whole, _WHOLE)
  whole.assign(3 * _WHOLE)
  path = tf.train.Checkpoint(weight=whole).write(str(tmp_path / 'whole'))
  tf.train.Checkpoint(weight=table).restore(path)
  np.testing.assert_array_equal(table.numpy(), 3 * _WHOLE)


def test_parts_are_joined_where_the_first_one_is():
  table, other = _table(1), tf.Variable(1.)
  joined = tf_keras_table.joined([other, *table.parts])
  assert joined[0] is other and joined[1] is table and len(joined) == 2
  assert tf_keras_table.table_of(other) is None
  assert tf_keras_table.table_of(table.parts[1]) is table


def test_rows_are_divided_as_lookups_expect():
  assert tf_keras_table.sizes(31, 3) == (11, 10, 10)
  assert tf_keras_table.sizes(2, 3) == (1, 1)
