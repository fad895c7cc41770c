import pytest

from gdp_grappler import errors
from placer_model.hdp import config as config_lib


def test_published_figures():
  config = config_lib.preset('published')
  assert config.num_groups(3) == 60 and config.num_groups(20) == 256
  assert (config.hidden_units, config.grouper_units) == (512, 64)
  assert config.learning_rate_at(449) == 0.1
  assert config.learning_rate_at(450) == pytest.approx(0.095)
  assert config.learning_rate_at(1399) == pytest.approx(0.1 * 0.95**19)
  assert (config.noise_at(749), config.noise_at(750)) == (0.5, 0.)


@pytest.mark.parametrize('change, told', [
    ({'steps': 0}, 'steps = 0 is not usable; give an integer of at least 1'),
    ({'temperature': 0.}, 'temperature = 0.0 is not usable; give a number '
     'above 0'),
    ({'aligned_decoder': 1}, 'aligned_decoder = 1 is not usable; give true'),
    ({'learning_rate': float('nan')}, 'learning_rate = nan'),
    ({'hidden_units': 33}, 'hidden_units = 33 is odd'),
])
def test_wrong_values_are_told(change, told):
  with pytest.raises(errors.GdpError, match=told):
    config_lib.HdpConfig(**change)


def test_unknown_preset_is_told():
  with pytest.raises(errors.GdpError, match='There are published, tuned'):
    config_lib.preset('fast')
