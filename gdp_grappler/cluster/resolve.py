"""A cluster from what a user writes."""

from __future__ import annotations

import os
from typing import Sequence

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import cluster_file
from gdp_grappler.cluster import connected_devices
from gdp_grappler.cluster import max_memory
from gdp_grappler.cluster import presets
from gdp_grappler.cluster import remote_devices

# What this process has.
LOCAL = 'local'
_FILE_SUFFIXES = ('.json', '.pbtxt', '.txt', '.textproto')


def resolve(
    text: str, devices: Sequence[str] = (), limits: max_memory.MaxMemory = ()
) -> cluster_lib.Cluster:
  """The cluster that a user means.

  Args:
    text: A preset's name such as '2xP100', 'local', 'grpc://host:port' of a
      running TensorFlow cluster, or the path of a file.
    devices: For 'local', the devices to use; all of the process if empty.
    limits: What plans may use of its memories.

  Raises:
    ClusterError: nothing of that name, the file is wrong, or nobody answers; or
      a limit is for a device that it lacks.
  """
  return max_memory.applied(_found(text, devices), limits)


def _found(text: str, devices: Sequence[str]) -> cluster_lib.Cluster:
  if text == LOCAL:
    return connected_devices.local_cluster(devices)
  if text.startswith('grpc:'):
    return remote_devices.remote_cluster(text)
  if text in presets.NAMES or not (os.sep in text or os.path.exists(text) or
                                   text.endswith(_FILE_SUFFIXES)):
    return presets.preset(text)
  return cluster_file.read(text)
