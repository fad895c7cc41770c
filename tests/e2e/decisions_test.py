"""The second run of a program does not place again."""

from __future__ import annotations

from concurrent import futures
import json
import stat

import pytest

from helpers import fresh

_OPTION = {'placer': 'random', 'keep_best': False, 'seed': 3, 'min_ops': 4}
_RECALLED = 'as decided in an earlier run'


def _run(folder, **changes):
  finished = fresh.run('decisions.py', json.dumps({**_OPTION, **changes}),
                       GDP_CACHE_DIR=str(folder))
  return finished.results, '\n'.join(finished.notices)


@pytest.fixture(scope='module')
def first(tmp_path_factory):
  folder = tmp_path_factory.mktemp('cache')
  return folder, *_run(folder)


def _entries(folder):
  return sorted((folder / 'decisions').glob('*.json'))


def test_a_second_process_uses_what_the_first_decided(first):
  folder, results, said = first
  assert results['searched'] and 'placed by random' in said
  assert _RECALLED not in said and len(results['used']) == 2
  again, said = _run(folder)
  assert not again['searched'] and _RECALLED in said
  assert 'placed by random' in said
  assert again['used'] == results['used']
  assert again['losses'] == results['losses']


def test_nobody_else_may_read_it(first):
  folder, _, _ = first
  (entry,) = _entries(folder)
  assert stat.S_IMODE(entry.stat().st_mode) == 0o600
  assert stat.S_IMODE(entry.parent.stat().st_mode) == 0o700


def test_other_settings_are_other_decisions(first):
  folder, _, _ = first
  results, said = _run(folder, seed=4)
  assert results['searched'] and _RECALLED not in said


def test_switched_off_nothing_is_kept_or_used(first, tmp_path):
  results, said = _run(first[0], cache=False)
  assert results['searched'] and _RECALLED not in said
  _run(tmp_path, cache=False)
  assert not _entries(tmp_path)


@pytest.mark.parametrize('damage', [
    lambda data: data[:len(data) // 2],
    lambda data: data.replace(b'CPU:0', b'CPU:1'),
    lambda data: b'\0' * len(data),
])
def test_damage_costs_one_line(tmp_path, damage):
  results, _ = _run(tmp_path)
  (entry,) = _entries(tmp_path)
  entry.write_bytes(damage(entry.read_bytes()))
  again, said = _run(tmp_path)
  assert again['searched'] and again['used'] == results['used']
  assert said.count('is damaged. The graph is placed anew.') == 1
  assert _RECALLED in _run(tmp_path)[1]


def test_two_processes_at_once(tmp_path):
  with futures.ThreadPoolExecutor(2) as pool:
    both = list(pool.map(lambda _: _run(tmp_path), range(2)))
  assert both[0][0]['used'] == both[1][0]['used']
  results, said = _run(tmp_path)
  assert _RECALLED in said and results['used'] == both[0][0]['used']
  assert len(_entries(tmp_path)) == 1
