"""Devices on which variables are created; `e2e` tests their later moves."""

import keras
import pytest
import tensorflow as tf

import gdp_grappler
from gdp_grappler import variable_scopes
from gdp_grappler.plugin import settings as settings_lib
from gdp_grappler.plugin.fitting import host_creation
from gdp_grappler.plugin.fitting import variable_moves

_HOST = '/job:localhost/replica:0/task:0/device:CPU:0'


@pytest.fixture(name='settings', params=[settings_lib.Settings(), None],
                ids=['on', 'off'])
def _settings(request, monkeypatch):
  monkeypatch.setattr(host_creation.switch, 'settings', lambda: request.param)
  return request.param


@pytest.fixture(name='moves')
def _moves(monkeypatch):
  found = []
  monkeypatch.setattr(variable_moves, 'movable', list)

  def move(pairs):
    for variable, device in pairs:
      variable.device = device
      found.append((variable, device))

  monkeypatch.setattr(variable_moves, 'move', move)
  return found


def test_the_scope_asks_for_the_host_while_the_option_is_on(
    settings, monkeypatch):
  asked = []
  stock = tf.device
  monkeypatch.setattr(tf, 'device',
                      lambda name: asked.append(name) or stock(name))
  with gdp_grappler.made_on_host():
    tf.Variable([1.])
  assert asked == ([_HOST] if settings else [])
  tf.Variable([1.])
  assert len(asked) == bool(settings)


class _Weight:
  """The attributes of a Keras variable that the module reads."""

  def __init__(self, device, size):
    self.value = type('Value', (), {'device': device})()
    self.shape, self.dtype = (size,), 'float32'


def _build(left, weights, monkeypatch, keeps_asked=True):
  monkeypatch.setattr(host_creation, 'left_bytes', lambda: left)
  host_creation._make_room(weights, keeps_asked)


_GPU = _HOST.replace('CPU', 'GPU')


@pytest.mark.parametrize('left, wanted', [(None, 0), (3 * 4 * 30, 0),
                                          (3 * 4 * 30 - 1, 2)])
def test_weights_wait_on_the_host_if_slots_have_no_room(left, wanted, moves,
                                                        monkeypatch):
  weights = [_Weight(_GPU, 10), _Weight(_GPU, 20)]
  _build(left, weights, monkeypatch)
  assert moves == [(weight.value, _HOST) for weight in weights][:wanted]


def test_a_variable_knows_that_it_waits_for_a_place(settings, moves,
                                                    monkeypatch):
  with gdp_grappler.made_on_host():
    variable = tf.Variable([1.])
  assert host_creation.waits_on_host(variable) == (settings is not None)
  weight = _Weight(_GPU, 10)
  _build(0, [weight], monkeypatch)
  assert host_creation.waits_on_host(weight.value)
  assert not host_creation.waits_on_host(tf.Variable([1.]))


def test_a_variable_that_fit_has_brought_to_a_gpu_waits_no_longer(
    moves, monkeypatch):
  """Once the next plan could move it to the CPU, which rounds differently."""
  weight = _Weight(_GPU, 10)
  _build(0, [weight], monkeypatch)
  assert host_creation.waits_on_host(weight.value)
  weight.value.device = _GPU
  assert not host_creation.waits_on_host(weight.value)


def test_weights_on_the_host_stay_there(moves, monkeypatch):
  _build(0, [_Weight(_HOST, 10)], monkeypatch)
  assert not moves


def test_weights_of_other_cards_need_no_room_on_this_one(moves, monkeypatch):
  """Once weights moved to the host, as weights on GPU:1 were counted."""
  weights = [_Weight(_GPU, 10), _Weight(_GPU[:-1] + '1', 90)]
  _build(3 * 4 * 10, weights, monkeypatch)
  assert not moves


@pytest.mark.parametrize('keeps_asked', [True, False])
def test_a_weight_that_tf_device_put_there_stays(keeps_asked, moves,
                                                 monkeypatch):
  """Once this weight moved to the host, and then to any device."""
  asked, other = _Weight(_GPU, 10), _Weight(_GPU, 20)
  asked.value._gdp_scope = _GPU
  _build(0, [asked, other], monkeypatch, keeps_asked)
  there = [weight for weight, _ in moves]
  assert there == ([] if keeps_asked else [asked.value]) + [other.value]


def test_a_weight_for_another_device_is_not_made_on_the_host(
    settings, monkeypatch):
  """Once its request was ignored if GPU:0 had no room for it."""
  host_creation.install()
  monkeypatch.setattr(host_creation, 'left_bytes', lambda: 0)
  with tf.device('CPU:0'):
    made = keras.Variable(initializer='zeros', shape=(10,), dtype='float32')
  assert not host_creation.waits_on_host(made.value)
  assert variable_scopes.device(made.value) == _HOST


@pytest.mark.parametrize('left', [3 * 4 * 10 - 1, 3 * 4 * 10, None])
def test_a_weight_that_has_no_room_is_made_on_the_host(left, settings,
                                                       monkeypatch):
  host_creation.install()
  made = []
  monkeypatch.setattr(host_creation, 'left_bytes', lambda: left)
  monkeypatch.setattr(host_creation, '_on_host',
                      lambda stock, **how: made.append(how) or stock(**how))
  keras.Variable(initializer='zeros', shape=(10,), dtype='float32')
  assert bool(made) == (settings is not None and left == 3 * 4 * 10 - 1)


def test_without_a_card_nobody_knows_what_is_left(settings):
  assert host_creation.left_bytes() is None


def _left_bytes(monkeypatch, option, cards=2):
  """Returns `left_bytes` if 1,000 bytes of GPU:0 are allocated."""
  settings = settings_lib.from_option({'cluster': '2xT4', **option})
  monkeypatch.setattr(host_creation.switch, 'settings', lambda: settings)
  from gdp_grappler.plugin import devices
  monkeypatch.setattr(devices.scopes, 'were_used', lambda: False)
  names = ['CPU:0', *(f'GPU:{i}' for i in range(cards))]
  monkeypatch.setattr(devices, 'names',
                      lambda: [f'/device:{name}' for name in names])
  monkeypatch.setattr(tf.config.experimental, 'get_memory_info',
                      lambda name: {'current': 1000, 'peak': 2000})
  return host_creation.left_bytes()


@pytest.mark.parametrize(
    'option',
    [{}, {'guard': False, 'xla': 'off'}, {'guard': False, 'keep_best': False}],
    ids=str)
def test_what_is_left_of_a_card(option, monkeypatch):
  from gdp_grappler.cluster import presets
  assert _left_bytes(monkeypatch,
                     option) == presets.preset('2xT4').pool_bytes[1] - 1000


@pytest.mark.parametrize('option, cards', [
    ({}, 1),
    ({'mode': 'report'}, 2),
    ({'move_variables': False}, 2),
], ids=str)
def test_weights_stay_on_a_card_if_fit_would_not_bring_them_back(
    option, cards, monkeypatch):
  """Once they went to the host, where each step read and updated them."""
  assert _left_bytes(monkeypatch, option, cards) is None


@pytest.mark.parametrize('option', [{'xla': 'keep'}, {'guard': False}], ids=str)
def test_weights_that_xla_keeps_on_a_full_card_are_told(option, monkeypatch):
  """Once a model without XLA ran out of memory, and no line had advice."""
  lines = []
  monkeypatch.setattr(host_creation.notices, 'say_once', lines.append)
  left = _left_bytes(monkeypatch, option)
  assert not host_creation._is_short_of(left) and not lines
  assert not host_creation._is_short_of(left + 1)
  assert 'gdp_grappler.made_on_host()' in lines[0]


def test_the_scope_changes_nothing_in_a_report(monkeypatch):
  """Once weights were made on the host although the option only reports."""
  settings = settings_lib.Settings(mode='report')
  monkeypatch.setattr(host_creation.switch, 'settings', lambda: settings)
  with gdp_grappler.made_on_host():
    variable = tf.Variable([1.])
  assert not host_creation.waits_on_host(variable)
