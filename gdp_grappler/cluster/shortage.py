"""Messages about graphs that do not fit a cluster: reasons and remedies."""

from __future__ import annotations

from typing import Sequence

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.graph import op_graph

# Largest number of variables that a message names.
_MOST_NAMED = 3
# Share of the usable memory above which a message warns the user.
_NEARLY_FULL = .9
_GB = 1e9
_MB = 1e6
_HOST = 'CPU'


def is_certain(graph: op_graph.OpGraph, cluster: cluster_lib.Cluster) -> str:
  """The reason why no placement can fit; '' if one may fit.

  The function looks only at variables, which takes no search. The largest group
  has to fit into one memory. All groups that may only be in some memories have
  to fit into these memories together.

  Args:
    graph: G groups.
    cluster: P memories.

  Raises:
    InfeasiblePlacementError: a group may not have any device.
  """
  held = _held(graph)
  if not held.any():
    return ''
  may = _pools_of_groups(graph, cluster)
  room = cluster.pool_bytes.astype(float)
  for group in np.argsort(-held, kind='stable')[:1]:
    most = room[may[group]].max()
    if held[group] > most:
      return _sentence(
          graph, cluster, f'{_names(graph, [group])} must be in one memory, '
          f'and the largest that it may be in has {size(most)}')
  for pools in np.unique(may[held > 0], axis=0):
    inside = ~(may & ~pools).any(axis=1)
    wanted, there = held[inside].sum(), room[pools].sum()
    if wanted > there:
      return _sentence(
          graph, cluster, f'its variables hold {size(wanted)} for good, and '
          f'{_pool_names(cluster, pools)}, where they may be, '
          f'{"has" if pools.sum() == 1 else "have"} {size(there)}. The '
          f'largest are {_largest(graph, inside)}')
  return ''


def of_placement(graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
                 peak_bytes: Sequence[int]) -> str:
  """The reason why the best placement that was found does not fit.

  Args:
    graph: N ops.
    cluster: P memories.
    peak_bytes: [P], bytes that the placement needs of each memory.
  """
  peaks, room = np.asarray(peak_bytes), cluster.pool_bytes
  full, pools = np.flatnonzero(peaks > room), np.arange(len(room))
  needs = ', '.join(f'{_pool_names(cluster, pools == pool)} needs '
                    f'{size(peaks[pool])} of {size(room[pool])}'
                    for pool in full)
  may = _pools_of_groups(graph, cluster)
  largest = _largest(graph, np.asarray(may[:, full].any(axis=1)))
  return _sentence(
      graph, cluster, f'in the best placement found, {needs}' +
      (f'. The largest variables are {largest}' if largest else ''))


def violations(cluster: cluster_lib.Cluster,
               peak_bytes: np.ndarray) -> tuple[placement_lib.Violation, ...]:
  """A violation for each memory that a placement exceeds.

  Args:
    cluster: P memories.
    peak_bytes: int64 [P], bytes that the placement needs of each memory.
  """
  room = cluster.pool_bytes
  pools = np.arange(len(room))
  return tuple(
      placement_lib.Violation(
          'memory', f'{_pool_names(cluster, pools == pool)} needs '
          f'{size(peak_bytes[pool])} at its peak, and a plan may use '
          f'{size(room[pool])} of it')
      for pool in np.flatnonzero(peak_bytes > room).tolist())


def nearly(cluster: cluster_lib.Cluster, peak_bytes: Sequence[int]) -> str:
  """A message if a plan nearly fills a memory; '' if it does not.

  Args:
    cluster: P memories.
    peak_bytes: [P], bytes that the plan needs of each memory.
  """
  room = cluster.pool_bytes
  pools = np.arange(len(room))
  full = [
      f'{_pool_names(cluster, pools == pool)} {size(peak)} of '
      f'{size(room[pool])}' for pool, peak in enumerate(peak_bytes)
      if _NEARLY_FULL * room[pool] < peak <= room[pool]
  ]
  return f'it nearly fills memories: {", ".join(full)}' if full else ''


def rooms_bytes(cluster: cluster_lib.Cluster) -> tuple[int, ...]:
  """Bytes that plans may use of each card, or of each memory without cards.

  Args:
    cluster: P memories.

  Returns:
    One number per memory of a card, or [P] if the cluster has no card.
  """
  cards = {
      pool for device, pool in zip(cluster.devices, cluster.memory_pools)
      if device.type != _HOST
  }
  return tuple(
      int(room) for pool, room in enumerate(cluster.pool_bytes)
      if pool in cards or not cards)


def size(count: float) -> str:
  """'16.3 GB', or '12 MB' below 1 GB."""
  if count >= _GB:
    return f'{count / _GB:.1f} GB'
  return f'{count / _MB:.3g} MB'


def _sentence(graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
              why: str) -> str:
  way_out = constraints.way_out_of_memory(graph, cluster)
  return (f'Graph "{graph.name}" does not fit cluster "{cluster.name}": {why}. '
          'Only tables are cut (split_tables). What would help: more or larger '
          'devices, a smaller batch, or an optimizer with fewer slots' +
          (f'; or: {way_out}.' if way_out else '.'))


def _held(graph: op_graph.OpGraph) -> np.ndarray:
  """float64 [G], bytes of the groups' variables with their slots."""
  return np.bincount(graph.groups, graph.param_bytes, graph.num_groups)


def _pools_of_groups(graph: op_graph.OpGraph,
                     cluster: cluster_lib.Cluster) -> np.ndarray:
  """bool [G, P], memories in which each group may be."""
  allowed = constraints.allowed_devices(graph, cluster)
  result = np.zeros((graph.num_groups, len(cluster.pool_bytes)), bool)
  for device, pool in enumerate(cluster.memory_pools):
    result[:, pool] |= allowed[:, device]
  return result


def _pool_names(cluster: cluster_lib.Cluster, pools: np.ndarray) -> str:
  return ' + '.join(
      label for label, pool in zip(cluster.device_labels, cluster.memory_pools)
      if pools[pool])


def _largest(graph: op_graph.OpGraph, inside: np.ndarray) -> str:
  """Names of the largest of some groups; '' if none has variables."""
  held = np.where(inside, _held(graph), 0)
  groups = np.argsort(-held, kind='stable')[:_MOST_NAMED]
  return _names(graph, [group for group in groups if held[group]])


def _names(graph: op_graph.OpGraph, groups: Sequence[int]) -> str:
  return '; '.join(_name(graph, group) for group in groups)


def _name(graph: op_graph.OpGraph, group: int) -> str:
  """'"words/embeddings", 6.0 GB, with its slots 18.0 GB'."""
  ops = np.flatnonzero((graph.groups == group) & (graph.param_bytes > 0))
  # The name of a slot is the name of its variable with a suffix.
  first = min(ops, key=lambda op: (len(graph.label(op)), op))
  own, in_all = graph.param_bytes[first], graph.param_bytes[ops].sum()
  said = f'"{graph.label(first)}", {size(own)}'
  return said if len(ops) == 1 else f'{said}, with its slots {size(in_all)}'
