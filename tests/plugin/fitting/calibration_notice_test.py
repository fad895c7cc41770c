"""Lines of a fit about cards that were never calibrated."""

import dataclasses
import sys

import pytest

from gdp_grappler.cluster import calibration
from gdp_grappler.cluster import local_devices
from gdp_grappler.cluster import nvml
from gdp_grappler.plugin import notices
from gdp_grappler.plugin.fitting import calibration_notice
from helpers import calibrations


@dataclasses.dataclass
class _Device:
  name: str


class _Tf:
  """Stands for TensorFlow on a machine with H100s."""

  __version__ = '2.21.0'

  def __init__(self, cards=1):
    self.config = self.experimental = self
    self._cards = cards

  def list_physical_devices(self, unused_kind):
    return [_Device('/physical_device:GPU:0')] * self._cards

  get_visible_devices = list_physical_devices

  def list_logical_devices(self):
    return [_Device('/device:CPU:0'), *[_Device('/device:GPU:0')] * self._cards]

  def get_device_details(self, unused_card):
    return {'device_name': calibrations.H100}

  def get_logical_device_configuration(self, unused_card):
    return None


class _Nvml:

  def cards(self):
    return [nvml.CardFacts(calibrations.H100, memory_bytes=80 << 30)]

  def driver(self):
    return '580.1'


@pytest.fixture(name='said')
def _said(monkeypatch, tmp_path):
  monkeypatch.setenv('GDP_CACHE_DIR', str(tmp_path))
  monkeypatch.delenv('CUDA_VISIBLE_DEVICES', raising=False)
  lines = []
  monkeypatch.setattr(notices, 'say_once', lines.append)
  return lines


def test_a_card_that_was_never_calibrated_is_told(monkeypatch, said):
  monkeypatch.setitem(sys.modules, 'tensorflow', _Tf())
  calibration_notice.tell_once(_Nvml())
  line, = said
  assert calibrations.H100 in line and 'gdp calibrate --device=GPU:N' in line


def test_a_calibrated_one_is_not_and_is_priced_by_it(monkeypatch, said):
  monkeypatch.setitem(sys.modules, 'tensorflow', _Tf())
  calibration.keep(calibrations.make(), said.append)
  calibration_notice.tell_once(_Nvml())
  assert not said
  cluster = local_devices.local_cluster((), _Nvml())
  assert cluster.devices[1].dispatch_s == 5e-6
  assert cluster.calibration(cluster.device_names[1]) == calibrations.make()
  assert not local_devices.assumed((), _Nvml()).calibrated


def test_of_another_driver_it_is_told(monkeypatch, said):
  monkeypatch.setitem(sys.modules, 'tensorflow', _Tf())
  other = dataclasses.replace(calibrations.make(), driver='570')
  calibration.keep(other, said.append)
  calibration_notice.tell_once(_Nvml())
  assert len(said) == 1


def test_without_a_card_nothing_is_said(monkeypatch, said):
  monkeypatch.setitem(sys.modules, 'tensorflow', _Tf(0))
  calibration_notice.tell_once(_Nvml())
  assert not said
