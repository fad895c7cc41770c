import pytest

from gdp_grappler.plugin import devices
from gdp_grappler.plugin import settings as settings_lib

_ONE_GPU = ['/device:CPU:0', '/device:GPU:0']
_HOST = '/job:localhost/replica:0/task:0'


@pytest.fixture
def lines(monkeypatch):
  result = []
  monkeypatch.setattr(devices.notices, 'say', result.append)
  devices._tell.cache_clear()
  yield result
  devices._tell.cache_clear()


@pytest.fixture(autouse=True)
def _no_scopes(monkeypatch):
  """Hides scopes that other tests of this process may have entered."""
  monkeypatch.setattr(devices.scopes, 'were_used', lambda: False)


def _has_choice(monkeypatch, names, **fields):
  monkeypatch.setattr(devices, 'names', lambda: names)
  return devices.has_choice(settings_lib.Settings(**fields))


def test_one_device_is_told_of_once(lines, monkeypatch):
  monkeypatch.setattr(devices, 'names', lambda: ['/device:CPU:0'])
  for _ in range(2):
    assert devices.tell_if_no_choice(settings_lib.Settings())
  assert lines == [
      'gdp_placement has nothing to do: this program has one device, CPU:0'
  ]


@pytest.mark.parametrize('names', [
    _ONE_GPU,
    ['/device:CPU:0', '/device:CPU:1', '/device:GPU:0'],
    [f'{_HOST}/device:CPU:0', f'{_HOST}/device:GPU:0'],
])
def test_one_gpu_is_no_choice(lines, monkeypatch, names):
  """Once such a program ran without XLA, and nothing was placed."""
  assert not _has_choice(monkeypatch, names)
  assert devices.tell_if_no_choice(settings_lib.Settings())
  assert lines == [
      'gdp_placement has nothing to do: this program has one GPU, GPU:0, and '
      'runs on it as without the option, XLA included'
  ]


@pytest.mark.parametrize('names', [
    ['/device:CPU:0', '/device:CPU:1'],
    ['/device:CPU:0', '/device:GPU:0', '/device:GPU:1'],
    [
        '/job:worker/replica:0/task:0/device:CPU:0',
        '/job:worker/replica:0/task:1/device:CPU:0',
        '/job:worker/replica:0/task:1/device:GPU:0'
    ],
])
def test_more_are(lines, monkeypatch, names):
  assert _has_choice(monkeypatch, names)
  assert not devices.tell_if_no_choice(settings_lib.Settings())
  assert lines == []


@pytest.mark.parametrize(
    'fields', [{'keep_best': False}, {'plan': (
        ('a', 'CPU:0'),)}, {'may_round': True}, {'order': 'critical_path'},
               {'mode': 'report', 'cluster': '2xP100'}])
def test_who_asks_for_the_cpu_has_a_choice(monkeypatch, fields):
  assert _has_choice(monkeypatch, _ONE_GPU, **fields)


def test_a_pin_is_a_choice(monkeypatch):
  monkeypatch.setattr(devices.scopes, 'were_used', lambda: True)
  assert _has_choice(monkeypatch, _ONE_GPU)


def test_names_are_those_of_tensorflow():
  assert '/device:CPU:0' in devices.names()


def _steps_stay(monkeypatch, names, **fields):
  monkeypatch.setattr(devices, 'names',
                      lambda: [f'{_HOST}/device:{name}' for name in names])
  return devices.steps_stay(settings_lib.Settings(**fields))


def test_devices_of_one_processor_never_pay(monkeypatch):
  cpus = ['CPU:0', 'CPU:1']
  assert _steps_stay(monkeypatch, cpus)
  assert not _steps_stay(monkeypatch, cpus, keep_best=False)
  assert not _steps_stay(monkeypatch, cpus, plan='plan.json')


def test_devices_of_several_processors_may_pay(monkeypatch):
  assert not _steps_stay(monkeypatch, ['CPU:0'], cluster='2xP100',
                         mode='report')
  assert not _steps_stay(monkeypatch, ['CPU:0'], cluster='nowhere')
