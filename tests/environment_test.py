"""Tests of gdp_grappler.environment."""

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
