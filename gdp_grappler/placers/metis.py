"""Balanced minimum cuts by METIS (Karypis and Kumar 1998)."""

from __future__ import annotations

import numpy as np

from gdp_grappler import errors
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import placer as placer_lib

# METIS takes integers; the heaviest vertex or edge gets this weight.
_LARGEST_WEIGHT = 1 << 20


class MetisPlacer:
  """One part per accelerator, or per CPU where there is no accelerator.

  Vertices are groups, weighted by their seconds; edges are weighted by bytes.
  Parts differ in work as METIS lets them (3 %) and cut few bytes; the order of
  execution is unknown to it. Groups that may not be on their part's device go
  to the host.
  """

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`."""
    devices = self._targets(problem.cluster)
    parts = self._partition(problem, len(devices))
    wanted = np.array(devices)[parts]
    allowed, host = problem.allowed, problem.cluster.host
    fallback = np.where(allowed[:, host], host, allowed.argmax(axis=1))
    ok = allowed[np.arange(len(wanted)), wanted]
    return placement_lib.from_groups(
        problem.graph, np.where(ok, wanted, fallback), problem.cluster)

  @staticmethod
  def _targets(cluster) -> list[int]:
    gpus = [i for i, d in enumerate(cluster.devices) if d.type == 'GPU']
    return gpus or list(range(cluster.num_devices))

  @staticmethod
  def _partition(problem, num_parts) -> np.ndarray:
    """int [G], a part of 0 .. num_parts - 1 per group."""
    graph = problem.graph
    if num_parts == 1:
      return np.zeros(graph.num_groups, int)
    pymetis = _pymetis()
    work = np.bincount(graph.groups, problem.op_seconds.min(axis=1),
                       graph.num_groups)
    starts, neighbours, weights = _adjacency(graph)
    _, parts = pymetis.part_graph(
        num_parts, pymetis.CSRAdjacency(starts, neighbours),
        vweights=_integers(work), eweights=_integers(weights),
        options=pymetis.Options(seed=problem.seed))
    return np.array(parts)


def _pymetis():
  try:
    import pymetis  # pylint: disable=g-import-not-at-top
  except ImportError as error:
    raise errors.GdpError(
        'The placer "metis" needs the package pymetis, which is not installed. '
        "Run: pip install 'gdp-grappler[metis]'") from error
  return pymetis


def _adjacency(graph):
  """Undirected group graph: row starts [G + 1], neighbours and bytes."""
  pairs = graph.groups[graph.edges].astype(np.int64)
  crossing = pairs[:, 0] != pairs[:, 1]
  low, high = np.sort(pairs[crossing], axis=1).T
  keys, where = np.unique(low * graph.num_groups + high, return_inverse=True)
  size = np.bincount(where, graph.edge_bytes[crossing], len(keys))
  low, high = keys // graph.num_groups, keys % graph.num_groups
  rows, columns = np.concatenate([low, high]), np.concatenate([high, low])
  order = np.argsort(rows, kind='stable')
  starts = np.concatenate([[0], np.cumsum(
      np.bincount(rows, minlength=graph.num_groups))])
  return starts, columns[order], np.concatenate([size, size])[order]


def _integers(weights) -> list[int]:
  """Positive integers in proportion; the largest is `_LARGEST_WEIGHT`."""
  top = max(float(np.max(weights, initial=0.)), 1e-30)
  return np.maximum(np.round(weights / top * _LARGEST_WEIGHT), 1).astype(
      int).tolist()
