import pytest

from gdp_grappler.plugin import devices


@pytest.fixture
def lines(monkeypatch):
  result = []
  monkeypatch.setattr(devices.notices, 'say', result.append)
  devices._tell.cache_clear()
  yield result
  devices._tell.cache_clear()


def test_one_device_is_told_of_once(lines, monkeypatch):
  monkeypatch.setattr(devices, 'names', lambda: ['/device:CPU:0'])
  assert devices.tell_if_there_is_one()
  assert devices.tell_if_there_is_one()
  assert lines == [
      'gdp_placement has nothing to do: this program has one device, CPU:0'
  ]


def test_more_are_not(lines, monkeypatch):
  monkeypatch.setattr(devices, 'names',
                      lambda: ['/device:CPU:0', '/device:GPU:0'])
  assert not devices.tell_if_there_is_one()
  assert lines == []


def test_names_are_those_of_tensorflow():
  assert '/device:CPU:0' in devices.names()
