import pytest
from tensorflow.core.protobuf import config_pb2

from gdp_grappler import errors
from gdp_grappler.plugin import host
from gdp_grappler.plugin import option
from gdp_grappler.plugin import settings


@pytest.fixture(autouse=True)
def no_library(monkeypatch):
  """Replaces the library, which a process can connect only once."""
  monkeypatch.delenv('GDP_CAPTURE_DIR', raising=False)
  monkeypatch.setattr(option, 'connect', lambda: True)


def _added(value):
  config = config_pb2.ConfigProto()
  option.add_to(config, value)
  return list(config.graph_options.rewrite_options.custom_optimizers)


@pytest.mark.parametrize('value', [None, False])
def test_off_adds_nothing(value):
  assert _added(value) == []


def test_settings_travel_to_the_pass():
  value = {'placer': 'random', 'min_ops': 40}
  optimizer, = _added(value)
  assert optimizer.name == 'gdp_placement'
  assert (settings.from_json(optimizer.parameter_map['settings'].s.decode()) ==
          settings.from_option(value))
  assert optimizer.parameter_map['min_ops'].i == 40
  assert not optimizer.parameter_map['capture'].b


def test_capturing_alone_has_no_settings(monkeypatch):
  monkeypatch.setenv('GDP_CAPTURE_DIR', '/d')
  optimizer, = _added(False)
  assert 'settings' not in optimizer.parameter_map
  assert optimizer.parameter_map['capture'].b
  assert optimizer.parameter_map['min_ops'].i == settings.Settings().min_ops


def test_is_added_once():
  config = config_pb2.ConfigProto()
  option.add_to(config, True)
  option.add_to(config, True)
  assert len(config.graph_options.rewrite_options.custom_optimizers) == 1


def test_other_optimizers_stay():
  config = config_pb2.ConfigProto()
  config.graph_options.rewrite_options.custom_optimizers.add(name='other')
  option.add_to(config, True)
  names = [
      o.name for o in config.graph_options.rewrite_options.custom_optimizers
  ]
  assert names == ['other', 'gdp_placement']


def test_without_library_nothing_is_added(monkeypatch):
  monkeypatch.setattr(option, 'connect', lambda: False)
  assert _added(True) == []


def test_missing_library_is_told_and_not_raised(monkeypatch, caplog):
  monkeypatch.undo()

  def fail():
    raise errors.PluginError('No library. Reinstall.')

  monkeypatch.setattr(host, 'connect', fail)
  messages = []
  monkeypatch.setattr(option.notices, 'warn_once', messages.append)
  assert not option.connect.__wrapped__()
  assert messages == ['Placement is off. No library. Reinstall.']


def test_checked_copies_what_the_user_may_change():
  mine = {'gdp_placement': {'seed': 1}, 'remapping': False}
  result = option.checked(mine)
  mine['gdp_placement']['seed'] = 2
  assert result == {'gdp_placement': {'seed': 1}, 'remapping': False}


def test_unknown_key_names_the_nearest():
  with pytest.raises(ValueError, match='Did you mean "gdp_placement"'):
    option.checked({'gdp_placemnt': True})


def test_keys_of_others_are_not_ours_to_check():
  assert option.checked({'gpd': 1, 3: 4}) == {'gpd': 1, 3: 4}


def test_a_missing_network_of_the_environment_is_told(monkeypatch, capsys):
  """On a machine without GPUs, no placer ran that would have told it."""
  monkeypatch.setenv('GDP_POLICY', '/no/such/network')
  for value in (None, False, {'plan': {'head': 'GPU:0'}}):
    _added(value)
  assert not capsys.readouterr().err
  assert _added(True) and _added({'placer': 'gdp'})
  line, = capsys.readouterr().err.splitlines()
  assert line.startswith('[gdp] Warning: GDP_POLICY=/no/such/network: ')
