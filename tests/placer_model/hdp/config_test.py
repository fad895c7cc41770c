import pytest

from gdp_grappler import errors
from placer_model.hdp import config as config_lib


def test_groups_and_learning_rate():
  config = config_lib.HdpConfig(learning_rate=.1, start_decay_step=400)
  assert config.num_groups(3) == 60 and config.num_groups(20) == 256
  assert config.learning_rate_at(449) == 0.1
  assert config.learning_rate_at(450) == pytest.approx(0.095)
  assert config.learning_rate_at(1399) == pytest.approx(0.1 * 0.95**19)


@pytest.mark.parametrize('change, told', [
    ({'steps': 0}, 'steps = 0 is not usable; give an integer of at least 1'),
    ({'temperature': 0.}, 'temperature = 0.0 is not usable; give a number '
     'above 0'),
    ({'learning_rate': float('nan')}, 'learning_rate = nan'),
    ({'hidden_units': 33}, 'hidden_units = 33 is odd'),
])
def test_wrong_values_are_told(change, told):
  with pytest.raises(errors.GdpError, match=told):
    config_lib.HdpConfig(**change)
