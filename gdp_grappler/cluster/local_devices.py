"""The devices of this process as a cluster.

What TensorFlow tells (names, memory, which logical devices share a card) is
asked; speeds are those of the card's data sheet, or of a typical one. They
only have to be right in kind: whether devices share their compute decides
whether a second one can pay at all.
"""

from __future__ import annotations

import os
import re
from typing import Sequence

from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib

# Single precision FLOP/s, bytes/s of the card's memory (NVIDIA data sheets).
_CARDS = {'K40': (4.29e12, 288e9), 'P100': (9.3e12, 732e9),
          'V100': (15.7e12, 900e9), 'T4': (8.1e12, 300e9),
          'A100': (19.5e12, 1555e9), 'H100': (67e12, 3350e9)}
_OTHER_CARD = (1e13, 5e11)
# Of one core: two 256-bit fused multiply-adds on 8 floats a cycle at 2.5 GHz.
_CORE_FLOPS = 8e10
_CPU_BYTES_PER_S = 20e9
_PCIE = (1e-5, 12e9)
# Two CPU devices of one process hand on a pointer through the rendezvous.
_SAME_PROCESS = (5e-6, 1e12)


def local_cluster(names: Sequence[str] = ()) -> cluster_lib.Cluster:
  """The CPUs and GPUs of this process, all linked.

  Args:
    names: Full names of the devices to use, as TensorFlow gives them; all
      logical devices of the process if empty.

  Raises:
    ClusterError: there is no CPU among the names.
  """
  import tensorflow as tf  # pylint: disable=g-import-not-at-top
  names = tuple(names) or tuple(
      cluster_lib.canonical_device(d.name)
      for d in tf.config.list_logical_devices())
  known = [n for n in names if cluster_lib.device_type(n) in ('CPU', 'GPU')]
  cards = _cards(tf) if any('GPU' in n for n in known) else []
  devices = [_device(_in_full(name), cards) for name in sorted(
      known, key=lambda n: (cluster_lib.device_type(n) != 'CPU', _number(n)))]
  return cluster_lib.Cluster('local', tuple(devices), tuple(
      _link(source, target) for source in devices for target in devices
      if source != target))


def _in_full(name: str) -> str:
  name = cluster_lib.canonical_device(name)
  if name.startswith('/job:'):
    return name
  return cluster_lib.local_name(cluster_lib.device_type(name), _number(name))


def _number(name: str) -> int:
  return int(name.rsplit(':', 1)[-1])


def _device(name, cards) -> cluster_lib.Device:
  if cluster_lib.device_type(name) == 'CPU':
    return cluster_lib.Device(
        name=name, type='CPU', memory_bytes=_host_memory_bytes(),
        peak_flops=_CORE_FLOPS * len(os.sched_getaffinity(0)), efficiency=0.5,
        bandwidth_bytes_per_s=_CPU_BYTES_PER_S, launch_s=2e-6,
        compute='host CPU', memory='host memory')
  number = _number(name)
  card, title, memory_bytes = (cards[number] if number < len(cards)
                               else (f'GPU {number}', '', 16 << 30))
  peak, bandwidth = next((figures for key, figures in _CARDS.items()
                          if re.search(rf'\b{key}\b', title)), _OTHER_CARD)
  return cluster_lib.Device(
      name=name, type='GPU', memory_bytes=memory_bytes, peak_flops=peak,
      efficiency=0.7, bandwidth_bytes_per_s=bandwidth, launch_s=5e-6,
      compute=card, memory=name)


def _cards(tf) -> list[tuple[str, str, int]]:
  """Per logical GPU: its physical card, the card's title, its bytes."""
  result = []
  try:
    for card in tf.config.list_physical_devices('GPU'):
      title = tf.config.experimental.get_device_details(card).get(
          'device_name', '')
      parts = tf.config.get_logical_device_configuration(card) or [None]
      for part in parts:
        limit = part.memory_limit if part is not None else None
        result.append((card.name, title, (limit << 20) if limit else 16 << 30))
  except (RuntimeError, ValueError) as error:
    raise errors.ClusterError(
        f'TensorFlow does not describe its GPUs: {error}') from error
  return result


def _link(source, target) -> cluster_lib.Link:
  if source.type == target.type == 'CPU':
    figures, channels = _SAME_PROCESS, (f'{source.name} > {target.name}',)
  else:
    figures = _PCIE
    channels = tuple(f'{d.compute} {way}' for d, way in (
        (source, 'out'), (target, 'in')) if d.type == 'GPU')
  return cluster_lib.Link(source.name, target.name, *figures, channels)


def _host_memory_bytes() -> int:
  return os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')
