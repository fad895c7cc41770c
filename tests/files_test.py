"""Tests of gdp_grappler.files."""

import gzip
import io
import os
import pickle
import zipfile

import numpy as np
import pytest

from gdp_grappler import array_files
from gdp_grappler import errors
from gdp_grappler import files


def test_compressed_json_comes_back_and_equals_are_equal(tmp_path):
  value = {'ä': [1, 2.5, None], 'b': {}}
  paths = tmp_path / 'one.json.gz', tmp_path / 'other.json.gz'
  for path in paths:
    files.write_compressed_json(path, value)
  assert files.read_compressed_json(paths[0]) == value
  assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.parametrize(
    'data', [
        b'{}', b'',
        gzip.compress(b'{'),
        gzip.compress(b'[1]')[:-9],
        gzip.compress(b'[1]')[:12] + b'damaged'
    ], ids=['plain', 'empty', 'no_json', 'cut_off', 'damaged'])
def test_damaged_compressed_json(tmp_path, data):
  path = tmp_path / 'damaged.json.gz'
  path.write_bytes(data)
  with pytest.raises(errors.GdpError, match='Cannot read .*damaged.json.gz'):
    files.read_compressed_json(path)


def test_a_pipe_that_nobody_writes_to_is_no_file(tmp_path):
  os.mkfifo(tmp_path / 'pipe')
  with pytest.raises(OSError, match='it is no regular file'):
    files.read(tmp_path / 'pipe')


def _zip(entries):
  """Bytes of an archive."""
  buffer = io.BytesIO()
  with zipfile.ZipFile(buffer, 'w', zipfile.ZIP_DEFLATED) as archive:
    for name, data in entries.items():
      archive.writestr(name, data)
  return buffer.getvalue()


@pytest.mark.parametrize('path', ['/dev/zero', '/dev/tty', '/'])
def test_what_is_no_file_is_not_read(path):
  with pytest.raises(OSError):
    files.read(path)


def test_a_link_to_itself_is_not_followed_for_ever(tmp_path):
  (tmp_path / 'loop').symlink_to('loop')
  with pytest.raises(OSError, match='symbolic link'):
    files.read(tmp_path / 'loop')


def test_a_file_that_is_too_large_is_not_read(tmp_path):
  path = tmp_path / 'zeros'
  with path.open('wb') as file:
    file.truncate(1 << 40)
  with pytest.raises(OSError, match='more than 268435456 bytes'):
    files.read(path)
  path.write_bytes(b'12345')
  assert files.read(path, 5) == b'12345'
  with pytest.raises(OSError, match='more than 4 bytes'):
    files.read(path, 4)


def test_a_small_file_that_unpacks_to_any_size_is_refused(
    tmp_path, monkeypatch):
  monkeypatch.setattr(files, 'MOST_TEXT_BYTES', 1000)
  path = tmp_path / 'bomb.json.gz'
  path.write_bytes(gzip.compress(b' ' * 100_000))
  with pytest.raises(errors.GdpError, match='more than 1000 bytes'):
    files.read_compressed_json(path)


@pytest.mark.parametrize('data', ['[' * 200_000, b'{"a":' * 200_000])
def test_deep_nesting_is_a_wrong_value(data):
  with pytest.raises(ValueError, match='nested too deeply'):
    files.parse_json(data)


def test_json_may_begin_with_a_mark():
  assert files.parse_json(b'\xef\xbb\xbf{"a": 1}') == {'a': 1}


@pytest.mark.parametrize('data', [
    b'', b'PK\x03\x04',
    pickle.dumps([1]),
    _zip({'a.npy': b'\x93NUMPY\x01'}),
    _zip({'a.npy': bytes(2000)}),
    _zip({'a': pickle.dumps(1)}),
    _zip({'a.npy': pickle.dumps(1)})
])
def test_what_is_no_archive_of_arrays_is_refused(tmp_path, data):
  path = tmp_path / 'arrays.npz'
  path.write_bytes(data)
  with pytest.raises(ValueError):
    array_files.read(path, 1000)


def test_arrays_come_back(tmp_path):
  np.savez(tmp_path / 'arrays.npz', a=np.arange(3), b=np.array(['x']))
  found = array_files.read(tmp_path / 'arrays.npz')
  assert found['a'].tolist() == [0, 1, 2] and found['b'].tolist() == ['x']
  with pytest.raises(OSError, match='no regular file'):
    array_files.read('/dev/null')
