import types
import warnings

import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler.sharding import whole_weights


def _weights():
  return [tf.Variable(np.zeros((2, 3)), name='table'), tf.Variable(np.zeros(4))]


def test_each_weight_gets_its_value():
  weights, values = _weights(), [np.ones((2, 3)), np.arange(4.)]
  whole_weights.assign('words', weights, values)
  for weight, value in zip(weights, values):
    np.testing.assert_array_equal(weight.numpy(), value)


@pytest.mark.parametrize('values, said', [
    ([np.ones((2, 3))], 'Layer "words" has 2 weights, and was given 1'),
    ([np.ones((3, 2)), np.ones(4)], r'"table:0" has the shape \(2, 3\)'),
])
def test_other_values_are_refused(values, said):
  with pytest.raises(ValueError, match=said):
    whole_weights.assign('words', _weights(), values)


def test_files_hold_joined_weights_and_are_wrapped_once():
  module = types.SimpleNamespace(_legacy_weights=lambda layer: [layer, layer])
  for _ in range(2):
    whole_weights.wrap_h5(lambda parts: [sum(parts)], module)
  assert module._legacy_weights(3) == [6]


class _Lamb:
  clipnorm = None


@pytest.mark.parametrize('clipnorm, whole, said', [
    (1., (), 'clipnorm'),
    (None, ('_Lamb',), '_Lamb, which looks at whole variables'),
    (None, ('Muon',), None),
])
def test_updates_that_look_at_the_whole_are_warned_of(clipnorm, whole, said):
  optimizer = _Lamb()
  optimizer.clipnorm = clipnorm
  with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter('always')
    whole_weights.warn_of(optimizer, whole)
  assert [said in str(warning.message) for warning in caught
         ] == ([True] if said else [])
