"""Layers of TensorFlow 1 make the same variables with the option."""

import pytest

from helpers import fresh

pytestmark = pytest.mark.e2e


def test_layers_share_weights_as_without_the_option():
  """Two towers once got separate weights, in a scope that shares weights.

  A layer that was built before its first call once ended the program.
  """
  found = fresh.run('v1_layers.py', TF_USE_LEGACY_KERAS='1').results
  assert found['stock']['names'] == [
      'net/top/kernel:0', 'net/top/bias:0', 'dense/kernel:0', 'dense/bias:0'
  ]
  assert found['placed'] == found['stock']
