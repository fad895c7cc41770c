import pytest

from placer_model.hdp import config as config_lib


def test_groups_and_learning_rate():
  config = config_lib.HdpConfig(learning_rate=.1, start_decay_step=400)
  assert config.num_groups(3) == 60 and config.num_groups(20) == 256
  assert config.learning_rate_at(449) == 0.1
  assert config.learning_rate_at(450) == pytest.approx(0.095)
  assert config.learning_rate_at(1399) == pytest.approx(0.1 * 0.95**19)
