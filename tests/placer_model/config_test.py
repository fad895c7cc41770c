"""Tests of the network's configuration."""

import dataclasses

import pytest

from placer_model import config


@pytest.mark.parametrize('name', sorted(config.PRESETS))
def test_presets_survive_json(name):
  preset = config.preset(name)
  assert config.from_json(preset.to_json()) == preset


def test_changes_survive_json():
  changed = config.PlacerConfig(hidden_units=12, attention=False,
                                initial_logit_scale=0.5, seed=3)
  assert config.from_json(changed.to_json()) == changed


def test_every_field_is_documented():
  for field in dataclasses.fields(config.PlacerConfig):
    assert f'    {field.name}: ' in config.PlacerConfig.__doc__


@pytest.mark.parametrize('field, value', [('hidden_units', 0),
                                          ('hidden_units', 2.5),
                                          ('heads', True), ('attention', 1),
                                          ('initial_logit_scale', -1.0),
                                          ('initial_logit_scale', float('nan')),
                                          ('seed', -1)])
def test_wrong_values_are_named(field, value):
  with pytest.raises(config.ConfigError, match=field):
    config.PlacerConfig(**{field: value})


@pytest.mark.parametrize('text', ['', '[1]', '{"hidden": 3}', 'null'])
def test_other_json_is_refused(text):
  with pytest.raises(config.ConfigError, match='PlacerConfig'):
    config.from_json(text)


def test_unknown_preset_lists_the_known():
  with pytest.raises(config.ConfigError, match='default, gdp_one, paper'):
    config.preset('papper')
