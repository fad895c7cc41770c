import types

import pytest
from tensorflow.python.eager import context

from gdp_grappler.plugin import settings
from gdp_grappler.plugin import switch


def _context(**options):
  return types.SimpleNamespace(_optimizer_experimental_options=options)


@pytest.fixture(autouse=True)
def no_variable(monkeypatch):
  monkeypatch.delenv('GDP_PLACEMENT', raising=False)
  monkeypatch.setattr(context.context(), '_optimizer_experimental_options', {})
  switch.from_environment.cache_clear()
  yield
  switch.from_environment.cache_clear()


@pytest.mark.parametrize('option, on', [(None, False), (False, False),
                                        (True, True), ({}, True)])
def test_an_empty_dict_is_on(option, on):
  assert switch.is_set(option) == on


def test_the_option_wins_over_the_variable(monkeypatch):
  assert switch.value(_context()) is None
  monkeypatch.setenv('GDP_PLACEMENT', '{"placer": "metis"}')
  assert switch.value(_context()) == {'placer': 'metis'}
  assert switch.value(_context(gdp_placement=False)) is False


def test_settings_of_this_program():
  assert switch.settings() is None


def test_settings_of_an_option(monkeypatch):
  monkeypatch.setenv('GDP_PLACEMENT', '{"guard": true}')
  assert switch.settings() == settings.Settings(guard=True)
