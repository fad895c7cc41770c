"""What was measured survives the process that measured it."""

import json
import logging
import math

import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator
from gdp_grappler.evaluation.measuring import measurement_cache

GOOD = evaluator.Evaluation(.25, (3, 4), (), simulated=False, spread_s=.01)
BAD = evaluator.Evaluation(math.inf, (0, 0),
                           (placement_lib.Violation('run', 'it broke'),),
                           simulated=False)


def open_cache(folder, context=b'one'):
  return measurement_cache.MeasurementCache(folder, 'a graph/x', context)


def test_read_back(tmp_path):
  cache = open_cache(tmp_path / 'new')
  cache.add(b'k1', GOOD, lasting=True)
  cache.add(b'k2', BAD, lasting=True)
  again = open_cache(tmp_path / 'new')
  assert again[b'k1'] == GOOD and again[b'k2'] == BAD
  assert b'k3' not in again


def test_another_context_is_another_file(tmp_path):
  open_cache(tmp_path).add(b'k1', GOOD, lasting=True)
  assert b'k1' not in open_cache(tmp_path, b'two')


def test_what_may_go_better_next_time_is_forgotten(tmp_path):
  cache = open_cache(tmp_path)
  cache.add(b'k', BAD, lasting=False)
  assert cache[b'k'] == BAD
  assert b'k' not in open_cache(tmp_path)


def test_without_a_folder_nothing_is_written(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  cache = open_cache('')
  cache.add(b'k', GOOD, lasting=True)
  assert cache[b'k'] == GOOD
  assert not list(tmp_path.iterdir())


@pytest.mark.parametrize('damage', [
    b'{"key": "00", "step_ti', b'nonsense\n', b'[1]\n', b'\xff\xfe\n',
    b'{"key": "zz", "step_time_s": 1, "spread_s": 0, "peak_bytes": [], '
    b'"violations": []}\n',
    b'{"key": "00", "step_time_s": null, "spread_s": 0, "peak_bytes": [], '
    b'"violations": []}\n'
])
def test_damage_is_skipped_with_one_warning(tmp_path, caplog, damage):
  open_cache(tmp_path).add(b'k1', GOOD, lasting=True)
  path, = tmp_path.iterdir()
  path.write_bytes(path.read_bytes() + damage)
  with caplog.at_level(logging.WARNING, 'absl'):
    cache = open_cache(tmp_path)
  assert len(caplog.records) == 1 and '1 damaged' in caplog.text
  assert cache[b'k1'] == GOOD
  cache.add(b'k2', BAD, lasting=True)
  again = open_cache(tmp_path)
  assert again[b'k1'] == GOOD and again[b'k2'] == BAD


def test_a_line_with_a_flipped_bit_is_measured_again(tmp_path, caplog):
  open_cache(tmp_path).add(b'k1', GOOD, lasting=True)
  path, = tmp_path.iterdir()
  line = json.loads(path.read_text())
  path.write_text(json.dumps({**line, 'step_time_s': 2e-9}) + '\n')
  assert b'k1' not in open_cache(tmp_path)
  assert '1 damaged' in caplog.text


def test_every_line_is_whole_json(tmp_path):
  cache = open_cache(tmp_path)
  for i in range(20):
    cache.add(bytes([i]), GOOD, lasting=True)
  path, = tmp_path.iterdir()
  assert [
      bytes.fromhex(json.loads(line)['key'])
      for line in path.read_text().splitlines()
  ] == [bytes([i]) for i in range(20)]


def test_a_folder_that_cannot_be_made(tmp_path):
  (tmp_path / 'file').write_text('')
  with pytest.raises(errors.MeasurementError, match='Cannot read'):
    open_cache(tmp_path / 'file' / 'folder')
