"""Tests of positions."""

import placer_model  # isort: skip  # before TensorFlow  # noqa: F401

import numpy as np
import pytest
import tensorflow as tf

from placer_model.layers import positions


def test_by_hand():
  """Two units stand at a quarter and at three of the slowest, half a wave."""
  code = positions.encode(2, 1).numpy()
  half = np.sqrt(0.5)
  np.testing.assert_allclose(code, [[half, half], [half, -half]], atol=1e-6)


@pytest.mark.parametrize('size', [0, 1, 37])
def test_none_is_possible(size):
  assert positions.encode(size, 0).shape == (size, 0)


@pytest.mark.parametrize('size', [1, 2, 129, 2000])
def test_no_two_units_stand_in_one_place(size):
  code = positions.encode(size, 16).numpy()
  assert code.shape == (size, 32)
  assert np.abs(code).max() <= 1
  assert len(np.unique(code.round(3), axis=0)) == size


def test_unknown_places_are_zeros_and_known_ones_waves():
  found = positions.encode_places(tf.constant([[-1., .25], [.25, -1.]]),
                                  2).numpy()
  assert found.shape == (2, 10)
  # Half a wave, then eight waves over all places.
  waves = [
      1.,
      np.sin(np.pi * .25),
      np.sin(2 * np.pi * 8 * .25),
      np.cos(np.pi * .25),
      np.cos(2 * np.pi * 8 * .25)
  ]
  np.testing.assert_allclose(found[0], [0.] * 5 + waves, atol=1e-5)
  np.testing.assert_allclose(found[1], waves + [0.] * 5, atol=1e-5)


def test_sixteen_stretches_are_told_apart():
  middles = (np.arange(16, dtype=np.float32) + .5) / 16
  found = positions.encode_places(tf.constant(middles[:, None]), 6).numpy()
  likeness = found @ found.T
  assert (likeness.argmax(axis=1) == np.arange(16)).all()
