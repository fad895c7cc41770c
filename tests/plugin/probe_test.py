from unittest import mock

import pytest
import tensorflow as tf
from tensorflow.python.eager import context

from gdp_grappler.plugin import doctor
from gdp_grappler.plugin import probe


@pytest.mark.e2e
def test_a_fresh_process_has_the_hook_and_places_ops():
  found = {finding.what: finding for finding in doctor._in_a_fresh_process()}
  assert found['hook'].state == doctor.GOOD
  assert found['placement'].state == doctor.GOOD, found['placement'].detail
  assert '2 of 2 logical CPUs' in found['placement'].detail


def test_gpus_are_named_but_take_no_part(monkeypatch):
  """Once the line said "3 of 2 logical CPUs" on a machine with a GPU."""
  gpu = mock.Mock()
  gpu.name = '/physical_device:GPU:0'
  devices = {'GPU': [gpu], 'CPU': [mock.Mock()]}
  seen = mock.Mock()
  monkeypatch.delattr(context.Context, '_gdp_hook', raising=False)
  monkeypatch.setattr(tf.config, 'list_physical_devices', devices.get)
  monkeypatch.setattr(tf.config, 'set_visible_devices', seen)
  monkeypatch.setattr(tf.config, 'set_logical_device_configuration',
                      mock.Mock())
  assert probe.report()['gpus'] == [gpu.name]
  seen.assert_called_once_with([], 'GPU')
