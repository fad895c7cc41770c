"""Tests of examples."""

import placer_model  # isort: skip  # before TensorFlow  # noqa: F401

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.features import schema
from placer_model.pretraining.placements import example as example_lib


def _features(count: int, devices: int) -> schema.GraphFeatures:
  units = np.ones((count, len(schema.UNIT_FEATURES)), np.float32)
  return schema.GraphFeatures(
      op_types=('MatMul',) * count, units=units,
      edges=np.array([[0, 1]], np.int32), edge_bytes=np.ones(1, np.float32),
      allowed=np.ones((count, devices), bool), devices=np.ones(
          (devices, len(schema.DEVICE_FEATURES)), np.float32))


def _example(answers, excess, equal_sets=()):
  answers = np.array(answers, np.int32)
  return example_lib.Example(_features(answers.shape[1], 3), answers,
                             np.array(excess, np.float32), equal_sets)


def _logits(row, sure=2.):
  return (sure * (np.arange(3) == np.array(row)[:, None])).astype(np.float32)


def test_of_several_answers_the_nearest_is_to_be_said():
  example = _example([[0, 0, 1, 1], [0, 1, 0, 1]], [0., .01])
  for row in ([0, 0, 1, 1], [0, 1, 0, 1]):
    said = example.target(_logits(row), example.weights, patience=20.)
    assert said.tolist() == row
  # But not if it takes much longer.
  slow = _example([[0, 0, 1, 1], [0, 1, 0, 1]], [0., .5])
  said = slow.target(_logits([0, 1, 0, 1]), slow.weights, patience=20.)
  assert said.tolist() == [0, 0, 1, 1]


def test_equal_devices_are_exchanged_as_the_network_likes_it():
  example = _example([[0, 0, 1, 2]], [0.], equal_sets=((0, 1),))
  said = example.target(_logits([1, 1, 0, 0]), example.weights, 20.)
  assert said.tolist() == [1, 1, 0, 2]
  different = _example([[0, 0, 1, 2]], [0.])
  said = different.target(_logits([1, 1, 0, 0]), different.weights, 20.)
  assert said.tolist() == [0, 0, 1, 2]


def test_half_of_the_weight_is_work():
  example = _example([[0, 1]], [0.])
  column = schema.UNIT_FEATURES.index('fastest_s')
  example.features.units[:, column] = [3., 1.]
  np.testing.assert_allclose(example.weights, [1.25, .75])


def test_what_is_saved_is_read(tmp_path):
  examples = [
      _example([[0, 0, 1, 2], [1, 0, 1, 2]], [0., .05], ((0, 2),)),
      _example([[0, 1]], [0.])
  ]
  path = tmp_path / 'some/examples.npz'
  example_lib.save(path, examples)
  found = example_lib.load(path)
  assert len(found) == 2
  for one, other in zip(found, examples):
    assert one.answers.tolist() == other.answers.tolist()
    assert one.excess.tolist() == other.excess.tolist()
    assert one.equal_sets == other.equal_sets
    assert one.features.op_types == other.features.op_types
    assert (one.features.units == other.features.units).all()
    assert one.features.edges.dtype == np.int32


@pytest.mark.parametrize('data', [b'', b'PK', b'{}'])
def test_a_damaged_file_is_told(tmp_path, data):
  path = tmp_path / 'examples.npz'
  path.write_bytes(data)
  with pytest.raises(errors.GdpError, match='as examples'):
    example_lib.load(path)
