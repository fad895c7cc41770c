"""Placements of all ops on one device, except ops that may not be there."""

from __future__ import annotations

import dataclasses

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import constraints


def on_each(cluster: cluster_lib.Cluster, allowed: np.ndarray) -> np.ndarray:
  """int32 [D, G], for each device the placement of all groups on it.

  A group that may not be on the device is on its fallback device.

  Args:
    cluster: D devices.
    allowed: bool [G, D], see `constraints.allowed_devices`.
  """
  fallback = constraints.fallback_devices(allowed, cluster.host)
  devices = np.arange(cluster.num_devices)[:, None]
  return np.where(allowed.T, devices, fallback).astype(np.int32)


def of_each_kind(cluster: cluster_lib.Cluster, allowed: np.ndarray,
                 op_seconds: np.ndarray, *, alone: bool = False) -> np.ndarray:
  """int32 [K, G], like `on_each`, but once for each kind of device.

  Large clusters have many equal devices, and each placement has to be priced.

  Args:
    cluster: D devices.
    allowed: bool [G, D], see `constraints.allowed_devices`.
    op_seconds: float64 [N, D].
    alone: Whether to leave out CPUs that need a GPU for some groups. Such a mix
      may fit if no GPU has the memory, but nobody would call it one device.
  """
  others = np.unique(constraints.fallback_devices(allowed, cluster.host))
  kinds: dict[object, int] = {}
  for device in range(cluster.num_devices):
    links = _links(cluster, device, others)
    kind = device if links is None else (links, op_seconds[:, device].tobytes(),
                                         allowed[:, device].tobytes())
    kinds.setdefault(kind, device)
  chosen = list(kinds.values())
  rows = on_each(cluster, allowed)
  if alone:
    gpus = cluster.accelerators
    chosen = [
        d for d in chosen if d in gpus or not np.isin(rows[d], gpus).any()
    ]
  return rows[chosen]


def _links(cluster: cluster_lib.Cluster, device: int,
           others: np.ndarray) -> object | None:
  """A key that is equal for devices that give the same step if used alone.

  Args:
    cluster: D devices.
    device: Index of the device.
    others: int, fallback devices of groups that may not be on the device.

  Returns:
    Figures and links of the device. None if the device shares a compute unit or
    a memory, or is one of `others`: it then counts as equal to no other device.
  """
  shares = any((numbers == numbers[device]).sum() > 1
               for numbers in (cluster.compute_units, cluster.memory_pools))
  if shares or device in others:
    return None
  latency, bandwidth, channels = cluster.link_arrays
  links = tuple(
      (*latency[ends], *bandwidth[ends],
       len({*channels[ends][0].tolist()} & {*channels[ends][1].tolist()}))
      for other in others.tolist()
      for ends in [([device, other], [other, device])])
  figures = dataclasses.replace(cluster.devices[device], name='', compute='',
                                memory='')
  return figures, links
