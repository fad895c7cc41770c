"""Places groups on hosts first, then on the devices of each host.

The placer is for clusters of several hosts. Tensors between hosts travel over
the network, which is slower than the links within a host. So the placer divides
the groups among hosts, and then the groups of each host among its devices. Each
of the two problems is much smaller than the problem of all devices. The placer
tries all hosts, half of them, and so on: if the network is slow, fewer hosts
are better. Maps of coordinates (`coordinate_maps`) or cuts by METIS divide the
groups. The placer keeps the placement with the best price.
"""

from __future__ import annotations

import functools
from typing import Iterator

import numpy as np

from gdp_grappler import extras
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.graph.structure import coordinates as coordinates_lib
from gdp_grappler.placers import group_graph
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.coordinates import coordinate_maps
from gdp_grappler.placers.partitioning import metis
from gdp_grappler.placers.partitioning import partitioning

# For each number of hosts: number of maps of coordinates to hosts. Each of them
# is combined with maps to devices.
_OVER_HOSTS = 4
# For each map to hosts: number of maps of coordinates to the devices of a host.
_WITHIN = 3


class HierarchicalPlacer:
  """The best by price of many placements in two levels, hosts and devices."""

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`.

    Raises:
      GdpError: pymetis is not installed.
      InfeasiblePlacementError: the graph cannot be placed on the cluster.
    """
    extras.require('The placer "hierarchical"', 'pymetis')
    return partitioning.best(problem, functools.partial(_propose, problem))


def _propose(problem: placer_lib.Problem, memory: float,
             price: partitioning.PriceProposals) -> None:
  """Makes the proposals of one round of `partitioning.best`.

  Args:
    problem: The problem to place.
    memory: Weight of memory, see `partitioning.make_target`.
    price: Function that prices the proposals.
  """
  hosts = _hosts(problem)
  everywhere = np.concatenate(hosts)
  graph = group_graph.build(
      problem.graph, problem.busy_seconds, everywhere,
      partitioning.message_bytes(problem.cluster, everywhere))
  tiles = coordinate_maps.tiles(problem.graph,
                                coordinates_lib.of(problem.graph))
  count = len(hosts)
  while count:
    target = partitioning.make_target(problem, np.concatenate(hosts[:count]),
                                      graph, memory)
    split = _Split(target, hosts[:count], tiles, problem.cluster)
    price(partitioning.Proposal(row, target) for row in split.rows())
    count //= 2


def _hosts(problem: placer_lib.Problem) -> list[np.ndarray]:
  """The accelerators of each host, the host with the fastest first."""
  result: dict[str, list[int]] = {}
  for device in partitioning.accelerators(problem.cluster,
                                          problem.busy_seconds).tolist():
    name = cluster_lib.task(problem.cluster.device_names[device])
    result.setdefault(name, []).append(device)
  return [np.array(devices) for devices in result.values()]


class _Split:
  """Divides groups among hosts and their devices, in several ways."""

  def __init__(self, target: partitioning.Target, hosts: list[np.ndarray],
               tiles: coordinate_maps.Tiles | None,
               cluster: cluster_lib.Cluster) -> None:
    """Prepares the shares of hosts and devices.

    Args:
      target: Target of the devices of all hosts, one host after the other.
      hosts: int each, accelerators of each host.
      tiles: Tiles of the graph; None if the graph has no coordinates.
      cluster: Has the links.
    """
    self._cluster = cluster
    self._graph, self._hosts, self._tiles = target.graph, hosts, tiles
    ends = np.cumsum([len(devices) for devices in hosts])[:-1]
    self._shares = np.split(target.worker_shares, ends)

  def rows(self) -> Iterator[np.ndarray]:
    """int [G] each, placements of the groups."""
    shares = np.array([own.sum() for own in self._shares])
    yield self._within_by_cuts(metis.cut(self._graph, shares))
    if self._tiles is None:
      return
    hosts = np.array([devices[0] for devices in self._hosts])
    work = self._tiles.totals(self._graph.weights)
    best = self._best_maps(self._tiles, work, hosts, shares, _OVER_HOSTS)
    yield self._within_by_cuts(best[0][self._tiles.groups])
    for row in best:
      for devices in self._within_by_maps(row, work):
        yield devices[self._tiles.groups]

  def _within_by_cuts(self, hosts: np.ndarray) -> np.ndarray:
    """int [G], devices of groups by cuts within each host.

    Args:
      hosts: int [G], the host of each group.
    """
    result = np.zeros(len(hosts), int)
    for host, devices in enumerate(self._hosts):
      own = np.flatnonzero(hosts == host)
      parts = metis.cut(self._graph.induced(own), self._shares[host])
      result[own] = devices[parts]
    return result

  def _within_by_maps(self, hosts: np.ndarray,
                      work: np.ndarray) -> Iterator[np.ndarray]:
    """int [U] each, devices of tiles by maps within each host.

    Args:
      hosts: int [U], the host of each tile.
      work: float64 [U], work of each tile.
    """
    assert self._tiles is not None  # The caller has checked this.
    result = np.zeros((_WITHIN, len(hosts)), int)
    for host, devices in enumerate(self._hosts):
      own = np.flatnonzero(hosts == host)
      if not own.size:
        continue
      maps = self._best_maps(self._tiles.induced(own), work[own], devices,
                             self._shares[host], _WITHIN)
      for rank in range(_WITHIN):
        result[rank, own] = devices[maps[min(rank, len(maps) - 1)]]
    yield from result

  def _best_maps(self, tiles: coordinate_maps.Tiles, work: np.ndarray,
                 devices: np.ndarray, shares: np.ndarray,
                 most: int) -> list[np.ndarray]:
    """int [U] each, the most promising maps of tiles to parts; at least one.

    Args:
      tiles: U tiles.
      work: float64 [U], work of each tile.
      devices: int [k], one device of each part. The links between these devices
        stand for the links between the parts.
      shares: float64 [k], share of all work for each part.
      most: Largest number of maps.
    """
    if len(devices) == 1:
      return [np.zeros(len(work), int)]
    rows = coordinate_maps.maps(tiles, work, shares / shares.sum())
    workers = sum(map(len, self._hosts))
    _, scores = tiles.scores(rows, work, shares * workers,
                             partitioning.mean_link(self._cluster, devices))
    return [rows[k] for k in np.argsort(scores, kind='stable')[:most]]
