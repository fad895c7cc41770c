"""Limits of the memory that plans may use: 'GPU:0=12GB,CPU=64GB'."""

from __future__ import annotations

import dataclasses
import numbers
import re
from typing import Any, Mapping

import numpy as np

from gdp_grappler import errors
from gdp_grappler import spelling
from gdp_grappler.cluster import cluster as cluster_lib

# Pairs of a device and bytes, in the user's order. A device is 'GPU:0',
# 'worker/1/GPU:0', or 'GPU' for all devices of the type.
MaxMemory = tuple[tuple[str, int], ...]

# Bytes of a unit. kB is 1,000 bytes, KiB is 1,024.
_UNITS = {'': 1, 'B': 1}
for _power, _letter in enumerate('KMGT', 1):
  _UNITS[f'{_letter}B'] = 1000**_power
  _UNITS[f'{_letter}IB'] = 1024**_power
_SIZE = re.compile(r'(\d+(?:\.\d+)?)\s*([KMGT]?I?B)?', re.IGNORECASE)
_TYPE = re.compile(r'CPU|GPU', re.IGNORECASE)
_EXAMPLE = 'GPU:0=12GB,CPU=64GB'
_LARGEST_BYTES = 10**18  # A larger size is a mistake.


def parse(text: str) -> MaxMemory:
  """Reads the value of --max_memory.

  Args:
    text: 'DEVICE=SIZE', or several with commas between them; '' for no limits.

  Raises:
    ClusterError: the text has another form.
  """
  found: dict[str, str] = {}
  for part in text.split(',') if text.strip() else []:
    device, equals, size = part.partition('=')
    if not equals:
      raise _bad(f'{errors.shown(part.strip())} has no "="')
    if device.strip() in found:
      raise _bad(f'{errors.shown(device.strip())} is given twice')
    found[device.strip()] = size
  return checked(found)


def read(limits: str | Mapping[Any, Any] | None) -> MaxMemory:
  """The limits in a text or a dict; () for None.

  Raises:
    ClusterError: see `parse` and `checked`.
  """
  if limits is None:
    return ()
  if isinstance(limits, str):
    return parse(limits)
  if not isinstance(limits, Mapping):
    raise _bad(f'{errors.shown(limits)} is no text and no dict')
  return checked(limits)


def checked(limits: Mapping[Any, Any]) -> MaxMemory:
  """The limits in a dict: {'GPU:0': '12GB', 'CPU': 64 * 10**9}.

  Raises:
    ClusterError: a key is no device, or a value is no size.
  """
  return tuple((_device(device), _bytes(device, size))
               for device, size in limits.items())


def applied(cluster: cluster_lib.Cluster,
            limits: MaxMemory) -> cluster_lib.Cluster:
  """A cluster whose memories are no larger than the limits.

  A limit that is larger than a device's memory changes nothing. The limit of a
  device overrides the limit of its type. Devices that share a memory get the
  smallest of their limits.

  Raises:
    ClusterError: a limit is for a device that the cluster lacks.
  """
  if not limits:
    return cluster
  room = np.array([device.memory_bytes for device in cluster.devices])
  # Limits of types come first, so that limits of devices override them.
  for name, size in sorted(limits, key=lambda limit: not _is_type(limit[0])):
    room[_limited_devices(name, cluster)] = size
  devices = []
  for device, pool in zip(cluster.devices, cluster.memory_pools):
    least = int(room[cluster.memory_pools == pool].min())
    devices.append(
        dataclasses.replace(device, memory_bytes=min(device.memory_bytes,
                                                     least)))
  return dataclasses.replace(cluster, devices=tuple(devices))


def _limited_devices(device: str, cluster: cluster_lib.Cluster) -> list[int]:
  """Indices of the devices to which a limit applies."""
  if not _is_type(device):
    return [cluster.device_index(device)]
  found = [i for i, d in enumerate(cluster.devices) if d.type == device]
  if not found:
    raise errors.ClusterError(
        f'{spelling.argument("max_memory")} limits {device}, but '
        f'cluster "{cluster.name}" has only '
        f'{", ".join(cluster.device_labels)}.')
  return found


def _is_type(device: str) -> bool:
  return bool(_TYPE.fullmatch(device))


def _device(device: Any) -> str:
  if isinstance(device, str):
    if _is_type(device):
      return device.upper()
    try:
      cluster_lib.canonical_device(device)
      return device
    except errors.ClusterError:
      pass
  raise _bad(f'{errors.shown(device)} is no device')


def _bytes(device: str, size: Any) -> int:
  result: Any
  if isinstance(size, numbers.Real) and not isinstance(size, bool):
    result = size
  elif isinstance(size, str) and (match := _SIZE.fullmatch(size.strip())):
    result = float(match[1]) * _UNITS[(match[2] or '').upper()]
  else:
    raise _bad(f'{errors.shown(size)} for {device} is no size')
  if not 1 <= result <= _LARGEST_BYTES:
    raise _bad(f'{errors.shown(size)} for {device} is out of range')
  return int(result)


def _bad(what: str) -> errors.ClusterError:
  return errors.ClusterError(
      f'{spelling.argument("max_memory")}: {what}. Give devices and '
      f'sizes, such as {_EXAMPLE}; sizes '
      'may be in MB, GB, MiB or GiB, or bytes.')
