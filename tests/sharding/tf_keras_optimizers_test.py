"""What optimizers of tf_keras keep for tables in parts; files are in `saving`."""

import contextlib
import warnings

import numpy as np
import pytest
import tf_keras

import gdp_grappler
from gdp_grappler.sharding import tf_keras_table

_ROWS = 23


def _layer(parts):
  with (gdp_grappler.split_tables({'head': parts})
        if parts else contextlib.nullcontext()):
    layer = tf_keras.layers.Dense(_ROWS, name='head')
    layer.build((None, 5))
  return layer


def _update(optimizer, layer):
  optimizer.apply_gradients([(v * 0. + 1., v) for v in layer.variables])


def test_slots_of_parts_are_one_weight_of_the_optimizer():
  found = []
  for parts in (0, 3):
    optimizer = tf_keras.optimizers.Adam()
    _update(optimizer, _layer(parts))
    found.append([(v.name, tuple(v.shape)) for v in optimizer.variables])
  assert found[0] == found[1]
  assert ('Adam/m/kernel:0', (5, _ROWS)) in found[1]


def test_so_are_those_of_legacy_optimizers():
  found = []
  for parts in (0, 3):
    optimizer, layer = tf_keras.optimizers.legacy.Adam(), _layer(parts)
    _update(optimizer, layer)
    found.append([tuple(v.shape) for v in optimizer.weights])
    weights = [w + 1 for w in optimizer.get_weights()]
    optimizer.set_weights(weights)
    for one, other in zip(weights, optimizer.get_weights(), strict=True):
      np.testing.assert_array_equal(one, other)
    slot = optimizer.get_slot(layer.kernel, 'm')
    assert isinstance(slot, tf_keras_table.Table) == bool(parts)
    assert tuple(slot.shape) == (5, _ROWS)
  assert found[0] == found[1]


@pytest.mark.parametrize('optimizer', [
    tf_keras.optimizers.Adafactor, lambda: tf_keras.optimizers.SGD(clipnorm=1.),
    lambda: tf_keras.optimizers.legacy.SGD(clipnorm=1.)
], ids=['adafactor', 'clipnorm', 'legacy clipnorm'])
def test_optimizers_that_look_at_whole_variables_are_warned_of(optimizer):
  with pytest.warns(UserWarning, match='tables in parts'):
    _update(optimizer(), _layer(2))
  with warnings.catch_warnings():
    warnings.filterwarnings('error', message='The model has tables')
    _update(optimizer(), _layer(0))
