"""Tests of gdp_grappler.files."""

import gzip

import pytest

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
