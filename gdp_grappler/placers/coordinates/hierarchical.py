"""Hosts first, then the devices within each: for clusters of several hosts.

What hosts send each other goes over the network, what devices of one host send
each other does not. So groups are shared out over hosts, and then those of each
host over its devices. Both is a much smaller question than that of all devices
at once, and it is asked for all hosts, half of them, and so on: where the
network is slow, fewer are better. Parts are blocks, turns and grids of
coordinates (`coordinate_maps`) or cuts by METIS; the best by price is taken.
"""

from __future__ import annotations

import dataclasses
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

# Maps of coordinates to hosts, and of those of a host to its devices, the most
# promising of all. So many products are priced for each number of hosts.
_OVER_HOSTS, _WITHIN = 4, 3


class HierarchicalPlacer:
  """The best by price of placements that were made in two levels."""

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`.

    Raises:
      GdpError: pymetis is not installed.
      InfeasiblePlacementError: the graph cannot be placed on the cluster.
    """
    extras.require('The placer "hierarchical"', 'pymetis')
    return partitioning.best(problem, _propose)


def _propose(problem: placer_lib.Problem, memory: float,
             see: partitioning.See) -> None:
  """As `partitioning.best` asks."""
  hosts = _hosts(problem)
  everywhere = np.concatenate(hosts)
  graph = group_graph.build(
      problem, everywhere,
      partitioning.message_bytes(problem.cluster, everywhere))
  cells = coordinate_maps.cells(problem.graph,
                                coordinates_lib.of(problem.graph))
  count = len(hosts)
  while count:
    target = partitioning.make_target(problem, np.concatenate(hosts[:count]),
                                      graph, memory)
    split = _Split(problem, target, hosts[:count], cells)
    see(partitioning.Proposal(row, target) for row in split.rows())
    count //= 2


def _hosts(problem: placer_lib.Problem) -> list[np.ndarray]:
  """The accelerators of each host, the host with the fastest first."""
  result: dict[str, list[int]] = {}
  for device in partitioning.accelerators(problem).tolist():
    name = cluster_lib.task(problem.cluster.device_names[device])
    result.setdefault(name, []).append(device)
  return [np.array(devices) for devices in result.values()]


@dataclasses.dataclass(frozen=True, eq=False)
class _Level:
  """Parts to share something out to: hosts, or devices of one.

  Attributes:
    shares: float64 [k] of the work that each should get; sum 1.
    seconds: What all of the work takes where it is shared out so.
    latency_s: Of a message between parts, at the mean.
    s_per_byte: Likewise.
  """

  shares: np.ndarray
  seconds: float
  latency_s: float
  s_per_byte: float


class _Split:
  """Ways to share groups out over hosts and their devices."""

  def __init__(self, problem: placer_lib.Problem, target: partitioning.Target,
               hosts: list[np.ndarray],
               cells: coordinate_maps.Cells | None) -> None:
    """Prepares.

    Args:
      problem: G groups.
      target: Of the devices of all hosts, one host after the other.
      hosts: Accelerators of each.
      cells: Of the graph; None where it shows no structure.
    """
    self._links = problem.cluster.link_arrays
    self._graph, self._hosts, self._cells = target.graph, hosts, cells
    ends = np.cumsum([len(devices) for devices in hosts])[:-1]
    self._shares = np.split(target.worker_shares, ends)

  def rows(self) -> Iterator[np.ndarray]:
    """int [G] each: devices of groups."""
    shares = np.array([own.sum() for own in self._shares])
    yield self._within_by_cuts(_cut(self._graph, shares))
    if self._cells is None:
      return
    hosts = [devices[0] for devices in self._hosts]
    work = self._cells.totals(self._graph.weights)
    best = _best_maps(self._cells, work, self._level(np.array(hosts), shares),
                      _OVER_HOSTS)
    yield self._within_by_cuts(best[0][self._cells.groups])
    for row in best:
      for devices in self._within_by_maps(row, work):
        yield devices[self._cells.groups]

  def _within_by_cuts(self, hosts: np.ndarray) -> np.ndarray:
    """int [G], from the host of each group."""
    result = np.zeros(len(hosts), int)
    for host, devices in enumerate(self._hosts):
      own = np.flatnonzero(hosts == host)
      parts = _cut(self._graph.induced(own), self._shares[host])
      result[own] = devices[parts]
    return result

  def _within_by_maps(self, hosts: np.ndarray,
                      work: np.ndarray) -> Iterator[np.ndarray]:
    """int [U] each, from the host of each cell."""
    assert self._cells is not None  # Who asks has them.
    result = np.zeros((_WITHIN, len(hosts)), int)
    for host, devices in enumerate(self._hosts):
      own = np.flatnonzero(hosts == host)
      if not own.size:
        continue
      maps = _best_maps(self._cells.induced(own), work[own],
                        self._level(devices, self._shares[host]), _WITHIN)
      for rank in range(_WITHIN):
        result[rank, own] = devices[maps[min(rank, len(maps) - 1)]]
    yield from result

  def _level(self, devices: np.ndarray, shares: np.ndarray) -> _Level:
    """Of parts that `devices` stand for, and what each should get."""
    latency, bandwidth, _ = self._links
    apart = ~np.eye(len(devices), dtype=bool)
    pairs = np.ix_(devices, devices)
    if not apart.any():
      return _Level(np.ones(1), 1., 0., 0.)
    workers = sum(map(len, self._hosts)) * shares.sum()
    return _Level(shares / shares.sum(), 1 / workers,
                  float(latency[pairs][apart].mean()),
                  float((1 / bandwidth[pairs])[apart].mean()))


def _best_maps(cells: coordinate_maps.Cells, work: np.ndarray, level: _Level,
               most: int) -> list[np.ndarray]:
  """int [U] each, the most promising maps of cells to parts, at least one.

  By what the busiest part takes and what parts send each other.
  """
  if len(level.shares) == 1:
    return [np.zeros(len(work), int)]
  rows = coordinate_maps.Maps(cells, work).rows(level.shares)
  scores = _scores(cells, work, level, rows)
  return [rows[k] for k in np.argsort(scores, kind='stable')[:most]]


def _scores(cells: coordinate_maps.Cells, work: np.ndarray, level: _Level,
            rows: np.ndarray) -> np.ndarray:
  """float64 [K]."""
  count = len(level.shares)
  busiest = (cells.loads(rows, work, count) / level.shares).max(axis=1)
  size, tensors = cells.cuts(rows)
  sent_s = size * level.s_per_byte + tensors * level.latency_s
  return busiest * level.seconds + sent_s / count


def _cut(graph: group_graph.GroupGraph, shares: np.ndarray) -> np.ndarray:
  """int [V], the part of each vertex."""
  return metis.cut(graph, shares / shares.sum())
