"""Finds the cluster that a user's text names."""

from __future__ import annotations

import os
from typing import Sequence

from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import cluster_file
from gdp_grappler.cluster import connected_devices
from gdp_grappler.cluster import max_memory
from gdp_grappler.cluster import presets
from gdp_grappler.cluster import remote_devices

# The name of the cluster of all devices of this process.
LOCAL = 'local'


def resolve(
    text: str, devices: Sequence[str] = (), limits: max_memory.MaxMemory = ()
) -> cluster_lib.Cluster:
  """The cluster that a user's text names.

  Args:
    text: Name of a preset such as '2xP100', 'local', 'grpc://host:port' of a
      running TensorFlow cluster, or the path of a file.
    devices: For 'local', the devices to use; () means all of the process.
    limits: Memory that plans may use.

  Raises:
    ClusterError: the value is no text, there is no such preset or file, the
      file is wrong, the TensorFlow cluster does not answer, or a limit is for a
      device that the cluster lacks.
  """
  if not isinstance(text, str):
    raise errors.ClusterError(
        f'The cluster is {errors.one_line(repr(text))[:40]}; give a text, such '
        "as '2xP100', 'local' or the path of a cluster file.")
  return max_memory.applied(_found(text, devices), limits)


def _found(text: str, devices: Sequence[str]) -> cluster_lib.Cluster:
  if text == LOCAL:
    return connected_devices.local_cluster(devices)
  if text.startswith('grpc:'):
    return remote_devices.remote_cluster(text)
  # A folder may have the name of a preset.
  if os.path.isdir(text) and not presets.is_preset(text):
    raise errors.ClusterError(
        f'Cannot read cluster file {text}: it is a folder. Give a file, or a '
        'preset such as 2xP100.')
  if text in presets.NAMES or not (os.sep in text or os.path.isfile(text) or
                                   text.endswith(cluster_file.SUFFIXES)):
    return presets.preset(text)
  return cluster_file.read(text)
