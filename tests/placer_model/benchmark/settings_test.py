"""Keys of cells, budgets and limits."""

import dataclasses

import pytest

from placer_model.benchmark import settings as settings_lib

_SETTINGS = settings_lib.Settings()


def _key(settings=_SETTINGS, task='net@2xP100', digest='0', placer='metis'):
  return settings_lib.cell_key(settings, task, digest, placer)


def test_a_key_is_reproducible():
  assert _key() == _key(settings_lib.Settings())
  assert len(_key()) == 16


@pytest.mark.parametrize('change', [{'seed': 1}, {'time_budget_s':
    3.}, {'reward': 'measured'}, {'batch_size': 8}, {'local_workers': 2}])
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


def test_code_makes_another_cell(tmp_path, monkeypatch):
  source = tmp_path / 'placers' / 'a.py'
  source.parent.mkdir()
  source.write_text('x = 1\n')

  def digest():
    settings_lib._digest.cache_clear()
    return settings_lib._digest((source.parent,))

  before = digest()
  assert digest() == before
  source.write_text('x = 2\n')
  assert digest() != before


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
