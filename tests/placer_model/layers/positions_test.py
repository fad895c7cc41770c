"""Tests of positions."""

import placer_model  # isort: skip  # before TensorFlow  # noqa: F401

import numpy as np
import pytest

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
