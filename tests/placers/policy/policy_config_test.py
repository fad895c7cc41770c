import pytest

from gdp_grappler.placers.policy import policy_config


@pytest.mark.parametrize('field', ['prices', 'at_once', 'draws', 'rounds'])
def test_numbers_that_lead_nowhere_are_refused(field):
  with pytest.raises(ValueError, match=f'{field} is 0; give 1 or more'):
    policy_config.PolicyConfig(**{field: 0})


@pytest.mark.parametrize('field',
                         ['maps', 'schedules', 'drafts', 'gain_weight'])
@pytest.mark.parametrize('value', [-1, float('inf'), float('nan')])
def test_numbers_that_mean_nothing_are_refused(field, value):
  with pytest.raises(ValueError, match=f'{field} is {value}; give 0 or more'):
    policy_config.PolicyConfig(**{field: value})
