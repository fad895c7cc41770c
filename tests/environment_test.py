"""Tests of gdp_grappler.environment."""

import os
import pathlib
import tempfile

import pytest

from gdp_grappler import environment


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
  assert str(environment.cache_folder()) == folder


@pytest.fixture
def homeless(monkeypatch, tmp_path):
  """A user without a home; the folder of temporary files."""

  def home():
    raise RuntimeError('Could not determine home directory.')

  for name in ('GDP_CACHE_DIR', 'XDG_CACHE_HOME'):
    monkeypatch.delenv(name, raising=False)
  monkeypatch.setattr(pathlib.Path, 'home', home)
  monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path))
  return tmp_path


def test_a_user_without_a_home_has_a_private_cache(homeless):
  """Once this was a RuntimeError, and no graph was placed."""
  folder = environment.cache_folder()
  assert folder.parent == homeless
  assert folder.stat().st_mode & 0o777 == 0o700
  assert environment.cache_folder() == folder


@pytest.mark.parametrize('obstacle', ['shared', 'link', 'file', 'nowhere'])
def test_a_temporary_folder_that_is_not_private_is_no_cache(
    homeless, monkeypatch, obstacle):
  folder = environment.cache_folder()
  folder.rmdir()
  if obstacle == 'shared':
    folder.mkdir()
    folder.chmod(0o770)
  elif obstacle == 'link':
    (homeless / 'other').mkdir(0o700)
    folder.symlink_to(homeless / 'other')
  elif obstacle == 'file':
    folder.write_text('')
  else:
    monkeypatch.setattr(tempfile, 'tempdir', str(homeless / 'missing'))
  assert str(environment.cache_folder()).startswith(os.devnull)
