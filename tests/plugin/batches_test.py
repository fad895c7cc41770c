import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler.plugin import batches


def test_what_is_assumed_holds_for_the_context_and_the_innermost_wins():
  assert batches.current() is None
  with batches.assumed(64):
    with batches.assumed(None), batches.assumed(8):
      assert batches.current() == 8
    assert batches.current() == 64
  assert batches.current() is None


def test_a_size_that_was_assumed_before_ends_alone():
  with batches.assumed(32), batches.assumed(64):
    with batches.assumed(32):
      pass
    assert batches.current() == 64


def _batched(size):
  data = tf.data.Dataset.range(10).map(lambda i: (tf.fill([3], i), i))
  return data.batch(size).map(lambda x, y: (x, y)).prefetch(1)


class _Adapter:
  batch_size = 5


@pytest.mark.parametrize(
    'make, size',
    [(lambda: (np.zeros([7, 2]), np.zeros([7])), 7),
     (lambda: {'x': tf.zeros([6, 1])}, 6),
     (lambda: (tf.constant(1), tf.zeros([4])), 4), (lambda: _batched(3), 3),
     (lambda: iter(_batched(3)), 3), (_Adapter, 5),
     (lambda: tf.data.Dataset.range(4).batch(2, drop_remainder=True), 2),
     (lambda: tf.data.Dataset.from_generator(
         lambda: iter(()), output_signature=tf.TensorSpec([None, 2])), None),
     (lambda: 3, None)])
def test_sizes(make, size):
  assert batches.size_of(make()) == size


def test_a_tensor_of_unknown_rank_is_passed_over():
  """Once `fit` ended with an error about this tensor."""
  assert batches.size_of((tf.TensorSpec(None), tf.TensorSpec([4]))) == 4
