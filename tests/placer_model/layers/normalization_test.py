"""Tests of the network's inputs."""

import placer_model  # isort: skip  # before TensorFlow  # noqa: F401

import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler.features import schema
from placer_model import export
from placer_model.layers import normalization

_UNIT = schema.UNIT_FEATURES.index
_DEVICE = schema.DEVICE_FEATURES.index


def _inputs(features):
  return normalization.unit_inputs(*(tf.constant(features[name])
                                     for name in ('units', 'edges',
                                                  'edge_bytes', 'allowed',
                                                  'devices'))).numpy()


def _devices(*types):
  result = np.ones((len(types), len(schema.DEVICE_FEATURES)), np.float32)
  result[:, _DEVICE('is_cpu')] = [kind == 'CPU' for kind in types]
  result[:, _DEVICE('is_gpu')] = [kind == 'GPU' for kind in types]
  return result


def test_the_scales_cover_the_schema():
  assert {*normalization.UNIT_SCALES,
          *schema.PLACE_FEATURES} == set(schema.UNIT_FEATURES)
  assert {*normalization.DEVICE_SCALES,
          *normalization._FLAGS} == set(schema.DEVICE_FEATURES)


def test_inputs_are_of_order_one():
  for seed in range(5):
    features = export.random_features(50, 120, 3, seed)
    features['units'] = np.clip(features['units'], 0, 1e13)
    flags = features['devices'][:, [_DEVICE(f) for f in normalization._FLAGS]]
    features['devices'][:,
                        [_DEVICE(f) for f in normalization._FLAGS]] = flags > 1
    inputs = _inputs(features)
    assert np.isfinite(inputs).all()
    assert np.abs(inputs).max() < 30  # for raw figures up to 1e13
    assert np.median(np.abs(inputs)) < 2


@pytest.mark.parametrize('value', [0.0, 1e15, np.inf])
def test_odd_device_figures_stay_finite(value):
  devices = _devices('CPU')
  devices[:, 3:] = value
  devices[:, _DEVICE('memory_bytes')] = 1e9
  devices[:, _DEVICE('flops_per_s')] = 1e9
  devices[:, _DEVICE('bandwidth_bytes_per_s')] = 1e9
  features = export.random_features(6, 4, 1, seed=0) | {'devices': devices}
  assert np.isfinite(_inputs(features)).all()


def test_an_empty_figure_stays_finite():
  features = export.random_features(4, 3, 2, seed=0)
  features['units'] = np.zeros_like(features['units'])
  features['edge_bytes'] = np.zeros_like(features['edge_bytes'])
  assert np.isfinite(_inputs(features)).all()


def test_relative_inputs_do_not_change_with_the_scale_of_a_graph():
  """Ten times the work and bytes: only absolute inputs differ."""
  features = export.random_features(40, 90, 2, seed=1)
  columns = [
      _UNIT(name) for name in ('flops', 'io_bytes', 'output_bytes',
                               'param_bytes', 'input_bytes', 'fastest_s',
                               'slowest_s', 'downward_rank_s', 'upward_rank_s')
  ]
  features['units'][:, columns] += 1  # constants inside logarithms vanish
  larger = dict(features, units=features['units'].copy(),
                edge_bytes=features['edge_bytes'] * 10)
  larger['units'][:, columns] *= 10
  same = np.isclose(_inputs(features), _inputs(larger), atol=1e-3)
  relative = slice(13, 13 + 12)  # by mean [7], ranks [3], level, slow / fast
  assert same[:, relative].all()
  assert not same[:, :13][:, columns].all()


def test_bytes_on_edges_matter_on_both_ends():
  features = export.random_features(5, 0, 2, seed=2)
  features['edges'] = np.array([[1, 3]], np.int32)
  inputs = [
      _inputs(features | {'edge_bytes': np.array([size], np.float32)})
      for size in (10., 1e6)
  ]
  own = slice(25, 37)  # transfers
  changed = (inputs[0] != inputs[1])[:, own].any(axis=1)
  assert changed.tolist() == [False, True, False, True, False]


def test_slots_count_within_a_type():
  slots = normalization.device_slots(
      tf.constant(_devices('CPU', 'GPU', 'GPU', 'CPU', 'GPU')))
  assert slots.numpy().tolist() == [0, 0, 1, 1, 2]


def test_speeds_are_shares_of_the_best_peak():
  devices = _devices('CPU', 'GPU', 'GPU')
  devices[:, schema.DEVICE_FEATURES.index('flops_per_s')] = 1e12, 2e13, 1e13
  np.testing.assert_allclose(normalization.log_speeds(tf.constant(devices)),
                             np.log([.05, 1, .5]), rtol=1e-5)


def test_choices_tell_types_and_freedom():
  features = export.random_features(3, 0, 3, seed=0)
  features['devices'] = _devices('CPU', 'GPU', 'GPU')
  features['allowed'] = np.array([[1, 0, 0], [0, 1, 1], [1, 1, 1]], bool)
  choices = _inputs(features)[:, 37:41]
  np.testing.assert_allclose(choices,
                             [[1 / 3, 1, 1, 0], [2 / 3, 0, 0, 1], [1, 0, 1, 1]],
                             rtol=1e-6)


def test_devices_of_a_type_have_equal_stretches():
  places = normalization.slot_places(
      tf.constant(_devices('GPU', 'CPU', 'GPU', 'GPU', 'GPU'))).numpy()
  assert places.tolist() == [.125, .5, .375, .625, .875]


def test_places_are_the_columns_of_that_name():
  units = np.arange(2 * len(schema.UNIT_FEATURES), dtype=np.float32)
  units = units.reshape(2, -1)
  found = normalization.places(tf.constant(units)).numpy()
  assert found[:, schema.PLACE_FEATURES.index('depth_place')].tolist(
  ) == units[:, _UNIT('depth_place')].tolist()
  assert found.shape == (2, len(schema.PLACE_FEATURES))
