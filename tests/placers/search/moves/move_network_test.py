"""Predictions of the move network, and good and damaged files of weights."""

from __future__ import annotations

import dataclasses
import io
import zipfile

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.features.moves import schema
from gdp_grappler.placers.search.moves import move_network
from gdp_grappler.placers.search.moves import shipped_moves


def _network(names: tuple[str, ...] = ('a', 'b'),
             seed: int = 0) -> move_network.MoveNetwork:
  rng = np.random.default_rng(seed)
  count = len(names)
  return move_network.MoveNetwork(names, rng.random(count),
                                  rng.random(count) + .5,
                                  rng.normal(size=(count, 3)),
                                  rng.normal(size=3), rng.normal(size=(3, 2)),
                                  rng.normal(size=2))


def test_two_outputs_of_one_hidden_layer():
  network = move_network.MoveNetwork(('a',), [1.], [2.], [[1., -1.]], [0., 0.],
                                     [[1., 10.], [1., 20.]], [.5, 0.])
  # The standardized inputs are 1, -1 and 5, the largest value.
  logits, gains = network.predict(np.array([[3.], [-1.], [99.]], np.float32))
  assert logits.tolist() == [1.5, 1.5, 5.5]
  assert gains.tolist() == [10., 20., 50.]


def test_what_is_saved_is_loaded(tmp_path):
  network, path = _network(), tmp_path / 'folder' / 'weights.npz'
  move_network.save(path, network)
  found = move_network.load(path)
  assert found.features == network.features
  assert found.digest == network.digest
  first = path.read_bytes()
  move_network.save(path, network)
  assert path.read_bytes() == first


def test_a_digest_hangs_on_everything():
  network = _network()
  digests = {network.digest}
  for field in dataclasses.fields(network)[1:]:
    changed = getattr(network, field.name) + 1
    digests.add(dataclasses.replace(network, **{field.name: changed}).digest)
  digests.add(dataclasses.replace(network, features=('a', 'c')).digest)
  assert len(digests) == len(dataclasses.fields(network)) + 1


def test_other_features_are_refused(tmp_path):
  path = tmp_path / 'weights.npz'
  move_network.save(path, _network())
  with pytest.raises(errors.GdpError, match='other features'):
    move_network.load(path, ['group'])
  move_network.save(path, _network(schema.names(['group'])))
  move_network.load(path, ['group'])


def _written(path, **changes):
  """Writes a file like `save`, but with some other entries."""
  move_network.save(path, _network())
  with np.load(path) as archive:
    arrays = {**archive, **changes}
  buffer = io.BytesIO()
  np.savez(buffer, **{k: v for k, v in arrays.items() if v is not None})
  path.write_bytes(buffer.getvalue())


@pytest.mark.parametrize('changes', [{'bias': np.zeros(2, np.float32)}, {
    'digest': np.array('0' * 64)
}, {'bias': None}, {'mean': np.zeros(3)}, {'weights': np.full(
    (3, 2), np.nan)}, {'deviation': np.zeros(2)}, {
        'weights': np.array([[object()] * 2] * 3)
    }, {'features': np.array(['a', 'a'])}, {'hidden_bias': np.array('text')}])
def test_damage_is_told_in_one_line(tmp_path, changes):
  path = tmp_path / 'weights.npz'
  _written(path, **changes)
  with pytest.raises(errors.GdpError) as raised:
    move_network.load(path)
  assert str(path) in str(raised.value) and 'gdp_pretrain' in str(raised.value)


@pytest.mark.parametrize('data', [b'', b'PK', b'no zip at all', b'\x93NUMPY'])
def test_other_files_are_refused(tmp_path, data):
  path = tmp_path / 'weights.npz'
  path.write_bytes(data)
  with pytest.raises(errors.GdpError, match='Cannot read'):
    move_network.load(path)
  with pytest.raises(errors.GdpError, match='Cannot read'):
    move_network.load(tmp_path / 'missing.npz')


def test_what_would_fill_the_memory_is_not_unpacked(tmp_path):
  path = tmp_path / 'weights.npz'
  with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as archive:
    archive.writestr('mean.npy', bytes(1 << 25))
  with pytest.raises(errors.GdpError, match='unpacks to'):
    move_network.load(path)


def test_untrained_is_of_the_same_shape_and_knows_nothing_of_the_other():
  trained = shipped_moves.network()
  other = move_network.untrained(trained, np.random.default_rng(0))
  assert other.features == trained.features
  assert (other.mean == trained.mean).all()
  assert other.hidden_weights.shape == trained.hidden_weights.shape
  likeness = np.corrcoef(other.hidden_weights.ravel(),
                         trained.hidden_weights.ravel())[0, 1]
  assert abs(likeness) < .1
