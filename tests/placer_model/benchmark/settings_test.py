"""Keys of cells, budgets and limits."""

import dataclasses
import pathlib

import pytest

import gdp_grappler
from helpers import fresh
import placer_model
from placer_model.benchmark import settings as settings_lib

_SETTINGS = settings_lib.Settings()


def _key(settings=_SETTINGS, task='net@2xP100', digest='0', placer='metis'):
  return settings_lib.cell_key(settings, task, digest, placer)


def test_a_key_is_reproducible():
  assert _key() == _key(settings_lib.Settings())
  assert len(_key()) == 16


@pytest.mark.parametrize(
    'change', [{'seed': 1}, {'time_budget_s': 3.}, {'reward': 'measured'},
               {'clock': 'processor'}, {'batch_size': 8}, {'local_workers': 2}])
def test_a_setting_makes_another_cell(change):
  assert _key(dataclasses.replace(_SETTINGS, **change)) != _key()


@pytest.mark.parametrize(
    'change', [{'task': 'other'}, {'digest': '1'}, {'placer': 'random'}])
def test_task_graph_and_placer_make_another_cell(change):
  assert _key(**change) != _key()


@pytest.mark.parametrize('change', [{'jobs': 2}, {'cell_timeout_s': 9.}])
def test_what_changes_no_result_keeps_the_cell(change):
  assert _key(dataclasses.replace(_SETTINGS, **change)) == _key()


def test_versions_make_another_cell(monkeypatch):
  before = _key()
  monkeypatch.setattr(settings_lib, 'versions', lambda: {'numpy': '99'})
  assert _key() != before


@pytest.fixture(name='package')
def _package(tmp_path, monkeypatch):
  """A copy of both packages' files that keys are made from."""
  for name, path in settings_lib.sources().items():
    copy = tmp_path / name
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_bytes(path.read_bytes())
  monkeypatch.setattr(gdp_grappler, '__file__',
                      str(tmp_path / 'gdp_grappler' / '__init__.py'))
  monkeypatch.setattr(placer_model, '__file__',
                      str(tmp_path / 'placer_model' / '__init__.py'))
  settings_lib.code_digest.cache_clear()
  yield tmp_path
  settings_lib.code_digest.cache_clear()


@pytest.mark.parametrize('name', [
    'gdp_grappler/lib/libgdp_list_scheduler.so',
    'gdp_grappler/lib/libgdp_simulator.so',
    'gdp_grappler/lib/libgdp_grappler.so', 'gdp_grappler/graph/coarsening.py',
    'gdp_grappler/placers/partitioning/partitioning.py',
    'gdp_grappler/placers/placers.toml', 'placer_model/hdp/search.py',
    'placer_model/benchmark/bounds.py', 'placer_model/anything.py'
])
def test_a_changed_file_makes_another_cell(package, name):
  # The list scheduler and coarsening did not count once: stale cells were kept.
  before = _key()
  settings_lib.code_digest.cache_clear()
  assert _key() == before
  settings_lib.code_digest.cache_clear()
  with (package / name).open('ab') as file:
    file.write(b'#')
  assert _key() != before


def test_files_do_not_change_places(tmp_path):
  digests = set()
  for names in (('a', 'b'), ('b', 'a')):
    for name, text in zip(names, ('12', '3')):
      (tmp_path / name).write_text(text)
    digests.add(settings_lib._digest(settings_lib._files(tmp_path)))
  assert len(digests) == 2


def test_the_policy_counts_where_it_is_read(tmp_path, monkeypatch):
  before = _key(), _key(placer='gdp')
  (tmp_path / 'policy.json').write_text('{}')
  monkeypatch.setenv('GDP_POLICY', str(tmp_path))
  assert _key() == before[0]
  other = _key(placer='gdp')
  (tmp_path / 'policy.json').write_text('{ }')
  assert len({before[1], other, _key(placer='gdp')}) == 3


def test_cells_import_nothing_that_does_not_count():
  done = fresh.run_code('import json, sys\n'
                        'from gdp_grappler.placers import registry\n'
                        'from placer_model.benchmark import cell_worker\n'
                        'for name in registry.names():\n'
                        '  registry.factory(name)\n'
                        'print(json.dumps(list(sys.modules)))')
  loaded = {
      f'{name.replace(".", "/")}{end}' for name in done.results
      for end in ('.py', '/__init__.py')
  }
  counted = set(settings_lib.sources())
  assert 'placer_model/benchmark/cell.py' in loaded & counted
  for package in (gdp_grappler, placer_model):
    files = settings_lib._files(pathlib.Path(package.__file__).parent)
    assert loaded & set(files) <= counted


def test_budgets():
  quick = settings_lib.Settings(quick=True)
  assert _SETTINGS.budget_s('local_search') is None
  assert quick.budget_s('local_search') == 2.
  assert quick.budget_s('hdp') is None
  assert settings_lib.Settings(time_budget_s=5.).budget_s('hdp') == 5.


def test_limits_leave_room_for_the_budget():
  settings = settings_lib.Settings(time_budget_s=5000.)
  assert settings.timeout_s('local_search') == 5900.
  assert settings.timeout_s('hdp') > settings.timeout_s('local_search')
  assert settings_lib.Settings(cell_timeout_s=7.).timeout_s('hdp') == 7.
