"""Tests of gdp_grappler.cluster.cluster_json."""

import dataclasses
import json

import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import cluster_json
from gdp_grappler.cluster import presets
from helpers import clusters


def test_files_from_before_slots_and_copies():
  cluster = clusters.make_cluster(1)
  fields = json.loads(cluster.to_json())
  for device in fields['devices']:
    for field in ('slots', 'copy_s', 'copy_bytes_per_s'):
      del device[field]
  del fields['step_s'], fields['notes']
  assert cluster_json.from_json(json.dumps(fields), 'old') == cluster


def test_what_a_file_keeps():
  cluster = clusters.make_cluster(2)
  odd = dataclasses.replace(cluster.devices[0], slots=3, copy_s=1e-4,
                            copy_bytes_per_s=2e9)
  cluster = dataclasses.replace(cluster, devices=(odd, *cluster.devices[1:]),
                                step_s=1e-3, notes=('measured: step_s',))
  read = cluster_json.from_json(cluster.to_json(), 'x')
  assert read == cluster and read.notes == cluster.notes


@pytest.mark.parametrize('text', ['', '[1]', 'null', '{', '3', '[' * 100_000])
def test_texts_that_are_no_clusters(text):
  with pytest.raises(errors.ClusterError, match='x is not a cluster file'):
    cluster_json.from_json(text, 'x')


def test_what_the_host_takes_is_kept():
  cluster = presets.preset('2xH100')
  devices = [
      dataclasses.replace(device, context='card')
      if device.asynchronous else device for device in cluster.devices
  ]
  cluster = dataclasses.replace(cluster, devices=devices)
  read = cluster_json.from_json(cluster.to_json(), 'x')
  assert read == cluster
  assert read.contexts.tolist() == [0, 1, 1]


def test_a_cut_card_comes_back():
  cluster = presets.preset('1xH100:2')
  read = cluster_json.from_json(cluster.to_json(), 'file')
  assert read == cluster
  assert read.cut_cards.tolist() == [-1, 0, 0]
