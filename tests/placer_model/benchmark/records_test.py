"""Files of an output folder."""

import json
import os

import pytest

from gdp_grappler import digests
from gdp_grappler import errors
from gdp_grappler import files
from placer_model.benchmark import records
from placer_model.benchmark import settings as settings_lib
from placer_model.benchmark import tasks as tasks_lib

_TASK = tasks_lib.Task('net', '2xP100')


def test_a_record_comes_back(tmp_path):
  path = records.Folder(tmp_path).record(_TASK, 'metis', 'k1')
  records.write(path, 'k1', 'net@2xP100', 'metis', {'status': 'ok'})
  assert records.read(path, 'k1') == digests.sealed({
      'schema': settings_lib.SCHEMA, 'key': 'k1', 'task': 'net@2xP100',
      'placer': 'metis', 'status': 'ok'
  })


def test_a_record_with_a_flipped_bit_is_computed_again(tmp_path):
  path = records.Folder(tmp_path).record(_TASK, 'metis', 'k1')
  records.write(path, 'k1', 'net@2xP100', 'metis', {'step_time_s': .25})
  path.write_text(path.read_text().replace('.25', '.24'))
  assert records.read(path, 'k1') is None


@pytest.mark.parametrize('text', [
    '', '{"key": "k1"', '[]', '{"key": "k2", "schema": 1}',
    '{"key": "k1", "schema": 0}'
])
def test_what_cannot_be_used_is_not_there(tmp_path, text):
  path = tmp_path / 'cell.json'
  path.write_text(text)
  assert records.read(path, 'k1') is None
  assert records.read(tmp_path / 'nothing.json', 'k1') is None


def test_a_failure_is_written(tmp_path):
  path = tmp_path / 'cell.json'
  record = records.write_failure(path, 'k1', 't', 'p', 'it broke')
  assert record == json.loads(path.read_text())
  assert (record['status'], record['message']) == ('failed', 'it broke')


def test_cells_of_other_settings_have_other_files(tmp_path):
  folder = records.Folder(tmp_path)
  files = {
      folder.record(_TASK, 'metis', 'k1'),
      folder.record(_TASK, 'metis', 'k2'),
      folder.plan(_TASK, 'metis', 'k1'),
      folder.plan(_TASK, 'metis', 'k2')
  }
  assert len(files) == 4


@pytest.mark.parametrize('value', [[], {'schema': -1}])
def test_results_of_another_version(tmp_path, value):
  files.write_compressed_json(tmp_path / records.RESULTS, value)
  with pytest.raises(errors.GdpError, match='this version of gdp_bench'):
    records.read_results(tmp_path / records.RESULTS)


@pytest.mark.parametrize('place', ['missing', 'garbled', 'folder', 'pipe'])
def test_a_plan_that_cannot_be_read_is_not_there(tmp_path, place):
  path = tmp_path / 'plan.json'
  if place == 'garbled':
    path.write_text('{"devices"')
  elif place == 'folder':
    path.mkdir()
  elif place == 'pipe':
    os.mkfifo(path)
  assert not records.has_plan(path)


def test_results_that_are_none_of_ours_are_refused(tmp_path):
  path = tmp_path / records.RESULTS
  files.write_compressed_json(path, {'schema': settings_lib.SCHEMA})
  with pytest.raises(errors.GdpError, match='has no "simulated"'):
    records.read_results(path)


@pytest.mark.parametrize('text, said', [
    (None, 'No such file or directory. Give'),
    ('{}', 'Not a gzipped file .*Give'),
])
def test_what_cannot_be_read_as_results_gets_advice(tmp_path, text, said):
  """The message ended with '[Errno 2]' and a path, and gave no advice."""
  path = tmp_path / 'plan.json'
  if text:
    path.write_text(text)
  with pytest.raises(errors.GdpError, match=f'{said} the results.json.gz'):
    records.read_results(path)
