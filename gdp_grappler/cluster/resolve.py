"""A cluster from what a user writes."""

from __future__ import annotations

import os
from typing import Sequence

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import local_devices
from gdp_grappler.cluster import presets


def resolve(text: str, devices: Sequence[str] = ()) -> cluster_lib.Cluster:
  """The cluster that a preset's name, 'local' or a file path means.

  Args:
    text: '2xP100', 'local' or 'cluster.json'.
    devices: For 'local', the devices to use; all of the process if empty.

  Raises:
    ClusterError: nothing of that name, or the file is wrong.
  """
  if text == 'local':
    return local_devices.local_cluster(devices)
  if text in presets.NAMES or not (os.sep in text or os.path.exists(text)
                                   or text.endswith('.json')):
    return presets.preset(text)
  return cluster_lib.read_cluster_file(text)
