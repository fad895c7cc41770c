"""Files are whole or as they were."""

import os
import pathlib

import pytest

from gdp_grappler import errors
from placer_model.training import json_files


def test_what_is_written_is_read(tmp_path):
  path = tmp_path / 'new' / 'a.json'
  json_files.write_json(path, {'b': [1, 2.5, None]})
  assert json_files.read_json(path) == {'b': [1, 2.5, None]}
  assert [p.name for p in path.parent.iterdir()] == ['a.json']


def test_missing_file_is_none(tmp_path):
  assert json_files.read_json(tmp_path / 'a.json') is None


def test_damaged_file_is_an_error(tmp_path):
  (tmp_path / 'a.json').write_text('{')
  with pytest.raises(errors.GdpError, match='a.json'):
    json_files.read_json(tmp_path / 'a.json')


def test_infinity_is_not_json(tmp_path):
  with pytest.raises(ValueError):
    json_files.write_json(tmp_path / 'a.json', float('inf'))
  assert not list(tmp_path.iterdir())


def test_failed_write_leaves_what_was_there(tmp_path, monkeypatch):
  path = tmp_path / 'a.json'
  json_files.write_json(path, 1)

  def full(*unused):
    raise OSError(28, 'No space left on device')

  monkeypatch.setattr(os, 'fsync', full)
  with pytest.raises(errors.GdpError, match='No space left on device'):
    json_files.write_json(path, 2)
  assert json_files.read_json(path) == 1
  assert list(tmp_path.iterdir()) == [pathlib.Path(path)]
