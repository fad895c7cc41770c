"""The devices of a running TensorFlow cluster.

A server reports the names and types of its devices and the memory of its GPUs.
Speeds are assumed, and the notes of the cluster say so. The cluster only has to
be right in kind: devices of different tasks compute in parallel, and transfers
between such devices go through the network.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Sequence

from gdp_grappler import errors
from gdp_grappler import progress
from gdp_grappler.cluster import card_memory
from gdp_grappler.cluster import clock_rates
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import device_figures
from gdp_grappler.cluster import local_cpu
from gdp_grappler.cluster import type_rates

TIMEOUT_S = 10.  # Seconds until a server has to answer.
# Cores that a CPU is assumed to have.
_CORES = 4
_CORE_HERTZ = 2.5e9  # Assumed clock rate of a core.
_CORE_SETS = 'AVX2'  # Assumed instruction sets of a core.
_CORE_BYTES_PER_S = 1e10  # Assumed share of a core in the memory's bandwidth.
_MEMORY_BYTES = 16 << 30  # Assumed, because a server reports 256 MiB for a CPU.
_CARD, _NETWORK = 'V100', 'eth10'
# Seconds of a CPU to begin a message of gRPC with a tensor, or to read one.
_COPY_S = 5e-5
# Rate at which a CPU writes a tensor into such messages, or reads it.
_COPY_BYTES_PER_S = 2e9
_NOTE = (f'Speeds are assumed: {{cores}} core{{s}} per CPU, every GPU a '
         f'{_CARD}, between tasks '
         f'{device_figures.NETWORKS[_NETWORK].title}.')


def remote_cluster(target: str,
                   timeout_s: float = TIMEOUT_S) -> cluster_lib.Cluster:
  """The CPUs and GPUs of all tasks of a cluster.

  Args:
    target: 'grpc://host:port' of one of its tasks.
    timeout_s: Seconds within which the cluster has to answer.

  Raises:
    ClusterError: the text is not a target, or the cluster does not answer in
      time or has no CPU.
  """
  check_target(target)
  import tensorflow as tf
  progress.doing(f'connecting to {target}')
  # Without a timeout gRPC waits forever.
  config = tf.compat.v1.ConfigProto(
      operation_timeout_in_ms=max(1, int(1000 * timeout_s)))
  try:
    with tf.compat.v1.Session(target, graph=tf.Graph(),
                              config=config) as session:
      found = session.list_devices()
  except tf.errors.OpError as error:
    raise errors.ClusterError(
        f'{target} cannot be reached within {timeout_s:g} s: '
        f'{errors.one_line(error, 200)}. Start all tasks of that '
        'cluster, or name one that runs.') from error
  return of_devices(
      target,
      [(d.name,
        d.memory_limit_bytes if d.device_type == 'GPU' else _MEMORY_BYTES)
       for d in found if d.device_type in ('CPU', 'GPU')])


def check_target(target: str) -> None:
  """Checks the form of a target.

  Raises:
    ClusterError: the target does not have the form 'grpc://host:port'.
  """
  if not re.fullmatch(r'grpc://(\[[^]\s]+\]|[^/\s:]+):\d{1,5}', target):
    raise errors.ClusterError(
        f'"{target}" is not a target. Write grpc://host:port, the address of '
        'one task of a TensorFlow cluster.')


def of_devices(name: str, devices: Sequence[tuple[str, int]],
               cores: int = _CORES) -> cluster_lib.Cluster:
  """A cluster of devices of several tasks, with assumed speeds.

  Args:
    name: Name of the cluster.
    devices: [D], full name and bytes of memory of each device, in any order.
    cores: Number of cores of each CPU.

  Raises:
    ClusterError: there is no CPU.
  """
  made = sorted((_device(full, size, cores) for full, size in devices),
                key=lambda d: d.type != 'CPU')
  return cluster_lib.Cluster(
      name, tuple(made),
      tuple(
          link(source, target) for source in made for target in made
          if source != target), notes=(_NOTE.format(cores=cores, s='s' *
                                                    (cores > 1)),))


def of_names(names: Sequence[str]) -> cluster_lib.Cluster:
  """A cluster of tasks, if only the names of devices are known.

  Args:
    names: [D], full names.

  Raises:
    ClusterError: there is no CPU.
  """
  card = device_figures.CARDS[_CARD]
  memory_bytes = card_memory.of_card(card.name, card.memory_bytes)
  return of_devices('remote',
                    [(name, memory_bytes if cluster_lib.device_type(name)
                      == 'GPU' else _MEMORY_BYTES) for name in names])


def with_network(device: cluster_lib.Device) -> cluster_lib.Device:
  """The CPU with compute for transfers to other tasks, which gRPC needs."""
  return dataclasses.replace(device, copy_s=_COPY_S,
                             copy_bytes_per_s=_COPY_BYTES_PER_S)


def _device(name: str, memory_bytes: int, cores: int) -> cluster_lib.Device:
  task = cluster_lib.task(name)
  if cluster_lib.device_type(name) == 'GPU':
    card = device_figures.CARDS[_CARD]
    return cluster_lib.Device(name=name, type='GPU', memory_bytes=memory_bytes,
                              peak_flops=card.peak_flops,
                              efficiency=card.efficiency,
                              bandwidth_bytes_per_s=card.bandwidth_bytes_per_s,
                              launch_s=card.launch_s, compute=name, memory=name,
                              **device_figures.CARD_LAUNCH,
                              **type_rates.of_card(card.name))
  slots = min(device_figures.SLOTS_PER_SOCKET, cores)
  peak = clock_rates.cpu_flops(cores, _CORE_HERTZ, _CORE_SETS)
  # The CPUs of a task share its threads and its memory.
  return cluster_lib.Device(
      name=name, type='CPU', memory_bytes=memory_bytes, peak_flops=peak / slots,
      efficiency=device_figures.CPU_EFFICIENCY,
      bandwidth_bytes_per_s=_CORE_BYTES_PER_S * cores / slots,
      launch_s=device_figures.CPU_LAUNCH_S, compute=f'{task} CPU',
      memory=f'{task} memory', slots=slots, copy_s=_COPY_S,
      copy_bytes_per_s=_COPY_BYTES_PER_S)


def link(source: cluster_lib.Device,
         target: cluster_lib.Device) -> cluster_lib.Link:
  """The link between two devices of the same task or of different tasks."""
  tasks = cluster_lib.task(source.name), cluster_lib.task(target.name)
  if tasks[0] != tasks[1]:
    network = device_figures.NETWORKS[_NETWORK]
    return cluster_lib.Link(source.name, target.name, network.latency_s,
                            network.bandwidth_bytes_per_s,
                            (f'{cluster_lib.host(source.name)} network out',
                             f'{cluster_lib.host(target.name)} network in'))
  if source.type == target.type == 'CPU':
    return cluster_lib.Link(source.name, target.name, local_cpu.SAME_PROCESS_S,
                            local_cpu.SAME_PROCESS_BYTES_PER_S,
                            (f'{source.name} > {target.name}',))
  pcie = device_figures.CARDS[_CARD].pcie_bytes_per_s
  return cluster_lib.Link(
      source.name, target.name, device_figures.COPY_LATENCY_S, pcie,
      tuple(f'{d.name} {way}' for d, way in ((source, 'out'), (target, 'in'))
            if d.type == 'GPU'))
