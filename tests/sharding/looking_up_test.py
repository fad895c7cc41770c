import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler.sharding import looking_up

_TABLE = np.arange(20, dtype=np.float32).reshape(10, 2)
_ENDS = [(0, 4), (4, 8), (8, 10)]


def _parts():
  return [tf.Variable(_TABLE[first:last]) for first, last in _ENDS]


@pytest.mark.parametrize('dtype', ['int32', 'int64'])
@pytest.mark.parametrize('ids', [[0, 9, 4, 4], [[3, 8], [7, 0]], [], 5])
def test_rows_are_those_of_the_whole(ids, dtype):
  ids = tf.constant(ids, dtype)
  np.testing.assert_array_equal(looking_up.rows(_parts(), 4, ids),
                                tf.gather(_TABLE, ids))


def test_each_part_has_a_gradient_of_its_own_rows():
  parts = _parts()
  with tf.GradientTape() as tape:
    rows = looking_up.rows(parts, 4, tf.constant([9, 1, 9, 1, 0]))
    loss = tf.reduce_sum(rows * tf.constant([[1.], [2.], [3.], [4.], [5.]]))
  gradients = tape.gradient(loss, parts)
  assert [type(g) for g in gradients] == [tf.IndexedSlices] * 3
  assert [g.indices.numpy().tolist() for g in gradients] == [[1, 1, 0], [],
                                                             [1, 1]]
  assert [g.values.numpy()[:, 0].tolist() for g in gradients] == [[2, 4, 5], [],
                                                                  [1, 3]]


@pytest.mark.parametrize('ids', [[10], [-1]])
def test_a_number_out_of_range_is_an_error_as_in_the_whole(ids):
  with pytest.raises(tf.errors.InvalidArgumentError, match='not in'):
    looking_up.rows(_parts(), 4, tf.constant(ids))


def test_the_number_of_rows_is_known_where_that_of_ids_is():

  @tf.function
  def shape(ids):
    return tf.zeros(looking_up.rows(_parts_of_graph, 4, ids).shape)

  _parts_of_graph = _parts()
  assert shape(tf.constant([[1, 2, 3]])).shape == (1, 3, 2)
