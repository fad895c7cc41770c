"""Tests of `batch_specs`: what a batch looks like."""

import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler import errors
from gdp_grappler.graph.sources import batch_specs


def test_arrays_tensors_and_specs_are_alike():
  x = tf.TensorSpec((2, 3), tf.float32)
  y = tf.TensorSpec((2,), tf.int64)
  for data in ((np.zeros((2, 3)), np.zeros(2, np.int64)), (tf.zeros(
      (2, 3)), tf.zeros((2,), tf.int64)), (x, y)):
    assert batch_specs.of(data, 32) == (x, y)
  assert batch_specs.of(x, 32) == (x,)


def test_structures_stay_and_lists_become_tuples():
  x = tf.TensorSpec((2,), tf.int32)
  assert batch_specs.of(([x, x], {'a': x}), 32) == ((x, x), {'a': x})


def test_a_dataset_is_its_batches():
  data = tf.data.Dataset.from_tensors((tf.zeros(3), 1)).repeat(8).batch(4)
  assert batch_specs.of(data, 16) == (tf.TensorSpec(
      (16, 3), tf.float32), tf.TensorSpec((16,), tf.int32))


@pytest.mark.parametrize('data, said', [
    (('a',), 'holds a str'),
    ((), 'a tuple of 0'),
    (tf.TensorSpec(None), 'known number of dimensions'),
])
def test_what_is_no_batch_is_refused(data, said):
  with pytest.raises(errors.InvalidGraphError, match=said):
    batch_specs.of(data, 32)
