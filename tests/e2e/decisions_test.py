"""The second run of a program does not place again."""

from __future__ import annotations

import json

import pytest

from helpers import forked
from helpers import fresh

pytestmark = pytest.mark.e2e
_OPTION = {'placer': 'random', 'keep_best': False, 'seed': 3, 'min_ops': 4}
_RECALLED = 'as decided in an earlier run'


def _argument(changes):
  return json.dumps({**_OPTION, **changes})


def _told(finished):
  return finished.results, '\n'.join(finished.notices)


def _run(folder, **changes):
  """Starts the program as a user does."""
  return _told(
      fresh.run('decisions.py', _argument(changes), GDP_CACHE_DIR=str(folder)))


@pytest.fixture(scope='module')
def first(tmp_path_factory):
  folder = tmp_path_factory.mktemp('cache')
  return folder, *_run(folder)


@pytest.fixture(scope='module')
def program():
  with forked.Program('decisions:main', folder=fresh.PROGRAMS) as result:
    yield result


@pytest.fixture
def run(program):
  """Runs the program in a fork of a process that has imported TensorFlow."""
  return lambda folder, **changes: _told(
      program.run(_argument(changes), GDP_CACHE_DIR=str(folder)))


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


def test_switched_off_nothing_is_kept_or_used(first, run, tmp_path):
  results, said = run(first[0], cache=False)
  assert results['searched'] and _RECALLED not in said
  run(tmp_path, cache=False)
  assert not _entries(tmp_path)


def test_two_processes_at_once(program, run, tmp_path):
  both = program.together([[_argument({})]] * 2, GDP_CACHE_DIR=str(tmp_path))
  used = both[0].results['used']
  assert both[1].results['used'] == used
  results, said = run(tmp_path)
  assert _RECALLED in said and results['used'] == used
  assert len(_entries(tmp_path)) == 1
