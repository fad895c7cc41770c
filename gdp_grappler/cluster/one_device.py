"""Placements that use one device, wherever ops may be there."""

from __future__ import annotations

import dataclasses

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import constraints


def on_each(cluster: cluster_lib.Cluster, allowed: np.ndarray) -> np.ndarray:
  """int32 [D, G], everything on one device, as far as it may be there.

  Args:
    cluster: D devices.
    allowed: bool [G, D], as of `constraints.allowed_devices`.
  """
  fallback = constraints.fallback_devices(allowed, cluster.host)
  devices = np.arange(cluster.num_devices)[:, None]
  return np.where(allowed.T, devices, fallback).astype(np.int32)


def of_each_kind(cluster: cluster_lib.Cluster, allowed: np.ndarray,
                 op_seconds: np.ndarray) -> np.ndarray:
  """int32 [K, G], as `on_each`, once for devices of a kind.

  Large clusters have many of a kind, and each costs a step to be priced.

  Args:
    cluster: D devices.
    allowed: bool [G, D], as of `constraints.allowed_devices`.
    op_seconds: float64 [N, D].
  """
  others = np.unique(constraints.fallback_devices(allowed, cluster.host))
  kinds: dict[object, int] = {}
  for device in range(cluster.num_devices):
    links = _links(cluster, device, others)
    kind = device if links is None else (links, op_seconds[:, device].tobytes(),
                                         allowed[:, device].tobytes())
    kinds.setdefault(kind, device)
  return on_each(cluster, allowed)[list(kinds.values())]


def _links(cluster: cluster_lib.Cluster, device: int,
           others: np.ndarray) -> object | None:
  """Equal for devices that are as good as each other, if used alone.

  Args:
    cluster: D devices.
    device: Which.
    others: int, devices of what may not be there.

  Returns:
    Of the device's figures and links; None if no other can be as good.
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
