"""Small clusters and fixed prices for tests."""

from __future__ import annotations

import dataclasses
from typing import Callable, Sequence

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.costs import cost_model


def make_cluster(
    num_gpus: int = 2, *, latency_s: float = 1.0,
    bandwidth_bytes_per_s: float = 100.0, memory_bytes: int = 1 << 40,
    compute: Sequence[str] | None = None, memory: Sequence[str] | None = None,
    channels: Callable[[str, str], tuple[str, ...]] | None = None
) -> cluster_lib.Cluster:
  """Returns CPU:0, GPU:0, ... with round figures.

  Args:
    num_gpus: Number of devices beside the CPU.
    latency_s: Latency of all links, in seconds.
    bandwidth_bytes_per_s: Bandwidth of all links.
    memory_bytes: Memory of each device, in bytes.
    compute: [D], compute units; by default one per device.
    memory: [D], memory pools; by default one per device.
    channels: Function from two short names to the channels of their link. By
      default each device has one channel out and one channel in.
  """
  channels = channels or (lambda a, b: (f'{a} out', f'{b} in'))
  short = ['CPU:0'] + [f'GPU:{i}' for i in range(num_gpus)]
  full = [cluster_lib.local_name(*s.split(':')) for s in short]
  devices = [
      cluster_lib.Device(name=name, type=short[i][:3],
                         memory_bytes=memory_bytes, peak_flops=1e9,
                         efficiency=0.5, bandwidth_bytes_per_s=1e9,
                         launch_s=1e-3, compute=(compute or
                                                 full)[i], memory=(memory or
                                                                   full)[i])
      for i, name in enumerate(full)
  ]
  links = [
      cluster_lib.Link(full[a], full[b], latency_s, bandwidth_bytes_per_s,
                       channels(short[a], short[b])) for a in range(len(full))
      for b in range(len(full)) if a != b
  ]
  return cluster_lib.Cluster('test', tuple(devices), tuple(links))


def synchronous(cluster: cluster_lib.Cluster) -> cluster_lib.Cluster:
  """Returns the cluster with synchronous devices only."""
  return dataclasses.replace(
      cluster, devices=tuple(
          dataclasses.replace(device, launch=cluster_lib.SYNCHRONOUS)
          for device in cluster.devices))


def as_cpu(cluster: cluster_lib.Cluster, index: int) -> cluster_lib.Cluster:
  """Returns the cluster with a second CPU of this process in place of a GPU."""
  old, new = cluster.device_names[index], cluster_lib.local_name('CPU', 1)
  renamed = {name: name for name in cluster.device_names} | {old: new}
  return dataclasses.replace(
      cluster, devices=tuple(
          dataclasses.replace(d, name=new, type='CPU') if d.name == old else d
          for d in cluster.devices), links=tuple(
              dataclasses.replace(link, source=renamed[link.source],
                                  target=renamed[link.target])
              for link in cluster.links))


@dataclasses.dataclass(frozen=True, eq=False)
class FixedCosts(cost_model.CostModel):
  """A cost model with given costs: [N], [N, D] or one number."""

  seconds: object
  workspace: object = 0
  buses: object = None
  shares: object = 0.
  card: object = 1.

  def op_seconds(self, graph, cluster) -> np.ndarray:
    seconds = np.asarray(self.seconds, np.float64)
    if seconds.ndim == 1:
      seconds = seconds[:, None]
    return np.broadcast_to(seconds, (graph.num_ops, cluster.num_devices))

  def workspace_bytes(self, graph, cluster) -> np.ndarray:
    workspace = np.asarray(self.workspace, np.int64)
    if workspace.ndim == 1:
      workspace = workspace[:, None]
    return np.broadcast_to(workspace, (graph.num_ops, cluster.num_devices))

  def card_shares(self, graph, cluster, seconds) -> np.ndarray:
    return np.broadcast_to(self.card, seconds.shape)

  def contention(self, cluster) -> cost_model.Contention:
    count = cluster.num_devices
    buses = np.arange(count) if self.buses is None else self.buses
    return cost_model.Contention(
        np.asarray(buses),
        np.broadcast_to(self.shares, count).astype(float))


def mixed() -> cluster_lib.Cluster:
  """Returns two kinds of GPU and two CPUs, all of different sizes."""
  preset = presets.preset('4xP100')
  devices = list(preset.devices)
  devices[1] = dataclasses.replace(devices[1], peak_flops=1e12, launch_s=1e-5)
  devices[2] = dataclasses.replace(devices[2], memory_bytes=1 << 31)
  return as_cpu(dataclasses.replace(preset, devices=tuple(devices)), 3)
