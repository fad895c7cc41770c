"""Traced graphs that are kept."""

import os
import pathlib
import time

import pytest

from gdp_grappler import cache
from gdp_grappler.graph.sources import opened_files
from gdp_grappler.graph.sources import sources
from gdp_grappler.graph.sources import trace_cache
from gdp_grappler.graph.sources import tracing

_MODEL = '''
import keras
import sizes

def dense():
  return keras.Sequential(
      [keras.Input((4,)), keras.layers.Dense(sizes.UNITS)])
'''


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
  monkeypatch.setenv('GDP_CACHE_DIR', str(tmp_path / 'cache'))
  monkeypatch.chdir(tmp_path)


def _place(asked=('function', 'm:f', 'f', 32, '6.0'), **variables):
  return trace_cache.place(asked, {'HOME': '/h', **variables})


def _answer(**changes):
  return dict(graph=b'a graph', notes=['batches of 32'], error=None, files=[],
              seconds=20.) | changes


def _kept(**changes):
  trace_cache.keep(_place(), _answer(**changes), pytest.fail)
  return trace_cache.find(_place(), 'm:f', lambda line: None)


def test_an_answer_comes_back_and_says_from_when_it_is():
  assert trace_cache.find(_place(), 'm:f', pytest.fail) is None
  assert _kept() == dict(graph=b'a graph', notes=['batches of 32'], error=None)
  said = []
  trace_cache.find(_place(), 'm:f', said.append)
  assert said[0].startswith('m:f: as traced on 2') and str(_place()) in said[0]


@pytest.mark.parametrize(
    'changes',
    [dict(seconds=1.), dict(error='no model', graph=None)],
    ids=['quick', 'failed'])
def test_what_saves_no_time_is_not_kept(changes):
  assert _kept(**changes) is None


def test_what_was_asked_for_counts_and_terminals_do_not(monkeypatch, tmp_path):
  first = _place()
  assert _place(TERM='vt100', PWD='/x', SSH_TTY='/dev/pts/1') == first
  others = {
      first,
      _place(TF_USE_LEGACY_KERAS='1'),
      _place(('function', 'm:f', 'f', 64, '6.0')),
      _place(('function', 'm:f', 'f', 32, '8.0'))
  }
  (tmp_path / 'elsewhere').mkdir()
  monkeypatch.chdir(tmp_path / 'elsewhere')
  assert len(others | {_place()}) == 5


@pytest.mark.parametrize('change', [
    lambda path: path.write_text('other'), pathlib.Path.unlink,
    lambda path: os.utime(path, ns=(1, 1))
], ids=['written', 'removed', 'touched'])
def test_a_file_that_was_read_and_changed_counts(tmp_path, change):
  path = tmp_path / 'sizes.py'
  path.write_text('UNITS = 2')
  assert _kept(files=[opened_files.stamp(path)])
  change(path)
  assert trace_cache.find(_place(), 'm:f', pytest.fail) is None


def test_a_model_that_is_a_file_counts_itself(tmp_path):
  """A change of the file while it was traced went unnoticed."""
  asked = 'keras', 'a.keras', 'a', 32, '6.0'
  path = tmp_path / 'a.keras'
  path.write_text('model')
  kept = _place(asked)
  assert _place(asked) == kept
  path.write_text('another model')
  trace_cache.keep(kept, _answer(), pytest.fail)
  assert trace_cache.find(_place(asked), 'a.keras', pytest.fail) is None


@pytest.mark.parametrize('damage', [
    lambda data: data[:-1], lambda data: data[:80] + b'x' + data[81:],
    lambda data: b''
])
def test_what_is_damaged_is_traced_again(damage):
  assert _kept()
  _place().write_bytes(damage(_place().read_bytes()))
  assert trace_cache.find(_place(), 'm:f', pytest.fail) is None


def test_the_oldest_are_forgotten(monkeypatch):
  monkeypatch.setattr(trace_cache, '_MOST_KEPT', 3)
  places = [_place(('function', f'm:f{i}', 'f', 1, '')) for i in range(5)]
  for age, kept in enumerate(places):
    trace_cache.keep(kept, _answer(), pytest.fail)
    then = time.time() - 100 + age
    os.utime(kept, (then, then))
  assert set(cache.path('traces').iterdir()) == set(places[2:])


@pytest.mark.e2e
def test_a_model_is_traced_once_for_all_cards_of_a_generation(
    tmp_path, monkeypatch):
  # BART took 29 s, anew for each command and each cluster.
  monkeypatch.setattr(trace_cache, '_WORTH_S', 0.)
  (tmp_path / 'mine.py').write_text(_MODEL)
  (tmp_path / 'sizes.py').write_text('UNITS = 2')
  said = []
  first = sources.load('mine:dense', architecture='7.0', tell=said.append)
  assert any('the function called' in line for line in said)
  with monkeypatch.context() as patch:
    patch.setattr(tracing, '_WORKER', 'helpers.child_functions:refuse')
    said.clear()
    again = sources.load('mine:dense', architecture='7.5', tell=said.append)
  assert again.graph_def == first.graph_def
  assert not any('the function called' in line for line in said)
  assert any('batches of 32' in line for line in said)
  (tmp_path / 'sizes.py').write_text('UNITS = 3  # More.')
  other = sources.load('mine:dense', architecture='7.0')
  assert other.graph_def != first.graph_def
