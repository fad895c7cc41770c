"""Tests of gdp_grappler.files."""

import gzip

import pytest

from gdp_grappler import errors
from gdp_grappler import files


@pytest.mark.parametrize(
    'variables,folder',
    [({'GDP_CACHE_DIR': '/a', 'XDG_CACHE_HOME': '/b'}, '/a'),
     ({'XDG_CACHE_HOME': '/b'}, '/b/gdp_grappler'),
     ({'HOME': '/c'}, '/c/.cache/gdp_grappler')])
def test_where_the_cache_is(monkeypatch, variables, folder):
  for name in ('GDP_CACHE_DIR', 'XDG_CACHE_HOME'):
    monkeypatch.delenv(name, raising=False)
  for name, value in variables.items():
    monkeypatch.setenv(name, value)
  assert str(files.cache_folder()) == folder


def test_compressed_json_comes_back_and_equals_are_equal(tmp_path):
  value = {'ä': [1, 2.5, None], 'b': {}}
  paths = tmp_path / 'one.json.gz', tmp_path / 'other.json.gz'
  for path in paths:
    files.write_compressed_json(path, value)
  assert files.read_compressed_json(paths[0]) == value
  assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.parametrize('data', [
    b'{}', b'',
    gzip.compress(b'{'),
    gzip.compress(b'[1]')[:-9],
    gzip.compress(b'[1]')[:12] + b'damaged'
])
def test_damaged_compressed_json(tmp_path, data):
  path = tmp_path / 'damaged.json.gz'
  path.write_bytes(data)
  with pytest.raises(errors.GdpError, match='Cannot read .*damaged.json.gz'):
    files.read_compressed_json(path)
