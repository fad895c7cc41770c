"""The knobs."""

import dataclasses

import pytest

from gdp_grappler import errors
from placer_model.training import train_config


def test_every_field_is_documented():
  for field in dataclasses.fields(train_config.TrainConfig):
    assert f'    {field.name}: ' in train_config.TrainConfig.__doc__


def test_the_former_name_still_works():
  assert train_config.preset('paper') is train_config.preset('gdp_one')


def test_gdp_one_switches_every_lever_off():
  paper = train_config.preset('gdp_one')
  assert paper.exploration == 'levels'
  assert paper.credit == 'unit'
  assert not any(
      (paper.warm_search_trials, paper.warm_start_steps, paper.search_trials,
       paper.self_imitation_steps, paper.distill_steps))
  assert not paper.imitates and train_config.preset('default').imitates


@pytest.mark.parametrize(
    'changes',
    [{'rollouts': 0}, {'iterations': -1}, {'exploration': 'none'},
     {'confidence': 1.0}, {'learning_rate': 0.0}, {'credit': 'all'},
     {'ridge': 0.0}, {'levels': ()}, {'levels':
         (0, 9)}, {'last_rate': 0.0}, {'last_temperature': 0.0}, {'window': 0}])
def test_wrong_values_are_refused(changes):
  with pytest.raises(errors.GdpError, match=next(iter(changes))):
    train_config.TrainConfig(**changes)


def test_levels_end_at_the_units_that_are_decided_about():
  assert train_config.preset('paper').units == 'nested'
  assert train_config.preset('default').units == 'coarse'


def test_unknown_preset():
  with pytest.raises(errors.GdpError, match='default, gdp_one'):
    train_config.preset('papper')
