"""Tests of gdp_grappler.cluster.cluster_json."""

import dataclasses
import json

import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import calibrated
from gdp_grappler.cluster import cluster_json
from gdp_grappler.cluster import presets
from helpers import calibrations
from helpers import clusters


def test_files_from_before_slots_and_copies():
  cluster = clusters.make_cluster(1)
  fields = json.loads(cluster.to_json())
  for device in fields['devices']:
    for field in ('slots', 'copy_s', 'copy_bytes_per_s'):
      del device[field]
  del fields['step_s'], fields['notes']
  assert cluster_json.from_fields(fields, 'old') == cluster


def test_what_a_file_keeps():
  cluster = clusters.make_cluster(2)
  odd = dataclasses.replace(cluster.devices[0], slots=3, copy_s=1e-4,
                            copy_bytes_per_s=2e9)
  cluster = dataclasses.replace(cluster, devices=(odd, *cluster.devices[1:]),
                                step_s=1e-3, notes=('measured: step_s',))
  read = cluster_json.from_fields(json.loads(cluster.to_json()), 'x')
  assert read == cluster and read.notes == cluster.notes


@pytest.mark.parametrize('fields', [[1], None, 3, 'text'])
def test_json_that_is_no_cluster(fields):
  with pytest.raises(errors.ClusterError, match='x is not a cluster file'):
    cluster_json.from_fields(fields, 'x')


def test_what_the_host_takes_is_kept():
  cluster = presets.preset('2xH100')
  devices = [
      dataclasses.replace(device, context='card')
      if device.asynchronous else device for device in cluster.devices
  ]
  cluster = dataclasses.replace(cluster, devices=devices)
  read = cluster_json.from_fields(json.loads(cluster.to_json()), 'x')
  assert read == cluster
  assert read.contexts.tolist() == [0, 1, 1]


def test_a_cut_card_comes_back():
  cluster = presets.preset('1xH100:2')
  read = cluster_json.from_fields(json.loads(cluster.to_json()), 'file')
  assert read == cluster
  assert read.cut_cards.tolist() == [-1, 0, 0]


def test_devices_by_short_names():
  """Such a file was accepted, and then none of its devices was found."""
  cluster = calibrated.applied(presets.preset('2xH100'), calibrations.make())
  task = '/job:localhost/replica:0/task:0'
  fields = json.loads(cluster.to_json().replace(f'"{task}/device:', '"'))
  assert fields['devices'][1]['name'] == 'GPU:0'
  found = cluster_json.from_fields(fields, 'x')
  assert found.device_names == cluster.device_names
  assert found.device_index('GPU:1') == 2
  assert found.calibration(cluster.device_names[1])


def test_a_name_of_no_device():
  fields = json.loads(presets.preset('2xP100').to_json())
  fields['links'][3]['target'] = 'GPU'
  with pytest.raises(errors.ClusterError, match=r'links\[3\].target: "GPU" is'):
    cluster_json.from_fields(fields, 'x')
