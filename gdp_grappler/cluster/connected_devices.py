"""The devices of this process and of the hosts to which it is connected.

After `tf.config.experimental_connect_to_host` or `_to_cluster` a program has
the devices of other tasks in addition to its own. `local_devices` describes its
own devices. TensorFlow gives only the names of the other devices. Their speeds,
their memory and the network are assumed (`remote_devices`), and the notes of
the cluster say so.
"""

from __future__ import annotations

import dataclasses
from typing import Sequence

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import local_devices
from gdp_grappler.cluster import remote_devices


def local_cluster(names: Sequence[str] = ()) -> cluster_lib.Cluster:
  """All devices that the eager context has, or some of them.

  Args:
    names: Full names of the devices to use, as TensorFlow gives them; () means
      all logical devices.

  Raises:
    ClusterError: there is no CPU among the devices, or among the devices of
      this process.
  """
  import tensorflow as tf
  names = names or [d.name for d in tf.config.list_logical_devices()]
  known = [n for n in names if cluster_lib.device_type(n) in ('CPU', 'GPU')]
  tasks = set(map(task_of, known))
  own = own_task()
  if len(tasks) <= 1:
    # Also if this one task is not `own`: a server does not know its name in the
    # cluster.
    return local_devices.local_cluster(names)
  if own not in tasks:
    return remote_devices.of_names(known)
  here = local_devices.local_cluster([n for n in names if task_of(n) == own])
  return _joined(here, [n for n in known if task_of(n) != own])


def own_task() -> str:
  """Task of this process, such as '/job:localhost/replica:0/task:0'."""
  from tensorflow.python.eager import context
  server = context.context().get_server_def()
  if server is None or not server.job_name:
    return cluster_lib.task(cluster_lib.local_name('CPU', 0))
  return f'/job:{server.job_name}/replica:0/task:{server.task_index}'


def task_of(name: str) -> str:
  """Task in TensorFlow's name of a device; by default that of this process."""
  name = cluster_lib.canonical_device(name)
  return cluster_lib.task(name) if name.startswith('/job:') else own_task()


def _joined(here: cluster_lib.Cluster,
            names: Sequence[str]) -> cluster_lib.Cluster:
  """The cluster with additional devices of other tasks."""
  there = remote_devices.of_names(names)
  # A CPU spends compute on transfers to other tasks.
  own = tuple(
      remote_devices.with_network(device) if device.type == 'CPU' else device
      for device in here.devices)
  across = [
      remote_devices.link(source, target)
      for one, other in ((own, there.devices), (there.devices, own))
      for source in one for target in other
  ]
  return dataclasses.replace(
      here, devices=tuple(
          sorted((*own, *there.devices), key=lambda d: d.type != 'CPU')),
      links=(*here.links, *there.links, *across),
      notes=(*here.notes, *there.notes))
