"""Tests of the network's configuration."""

import dataclasses

import pytest

from placer_model import config


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


def test_fields_of_a_file_may_be_those_of_an_earlier_version():
  fields = dataclasses.asdict(config.PlacerConfig(heads=2))
  found = config.PlacerConfig.of_fields(fields | {'max_neighbors': 0})
  assert found == config.PlacerConfig(heads=2)
  for name, value in (('max_neighbors', 8), ('nonsense', 0)):
    with pytest.raises(config.ConfigError, match=f'field {name} = {value}'):
      config.PlacerConfig.of_fields(fields | {name: value})


def test_unknown_preset_lists_the_known():
  with pytest.raises(config.ConfigError, match='default, gdp_one, paper'):
    config.preset('papper')
