"""Hypergraph mapping onto the topology by Mt-KaHyPar.

L. Gottesbüren, T. Heuer, N. Maas, P. Sanders and S. Schlag: Scalable
high-quality hypergraph partitioning. ACM Transactions on Algorithms 20 (1),
2024; T. Heuer: A direct k-way hypergraph partitioning algorithm for optimizing
the Steiner tree metric. ALENEX 2024.
"""

from __future__ import annotations

from gdp_grappler import extras
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.partitioning import mapping
from gdp_grappler.placers.partitioning import partition_process

_WORKER = partition_process.Worker('mt_kahypar', placer='mt_kahypar')
# Allowed excess of a part, as a share of its weight; from the library's
# documentation.
_IMBALANCE = 0.03
# Further allowed excesses that are tried.
_IMBALANCES = (0.1, 0.3)
# Largest number of vertices of all mappings of one round together. It limits
# the time of a large graph to seconds.
_MOST_VERTICES = 150_000
# Largest number of these vertices per second of the time budget, because
# nothing can stop the library.
_VERTICES_PER_S = 6_000


class MtKahyparPlacer:
  """The best by price of many mappings of the hypergraph of tensors.

  A net is a tensor with the group that computes it and all groups that use it.
  So a tensor that is sent to a device counts once, even if several groups use
  it there. If all distances between devices are equal, the library minimises
  the number of devices of each net; otherwise it minimises the Steiner tree
  that joins the devices of each net. Parts get work in proportion to the speed
  of their device. Groups that may be on only one device are fixed vertices.

  The placer first tries several numbers of accelerators (or of CPUs if there is
  none) and all devices together, with and without the latency of a message.
  Then it tries looser balance and another seed on the devices of the best
  proposal. It uses the library's deterministic preset.
  """

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`."""
    extras.require('The placer "mt_kahypar"', 'mtkahypar')
    seed = problem.seed
    mapper = mapping.Mapper(
        _WORKER, lambda target: None if target.uniform else target.distances,
        _most_vertices(problem.time_budget_s))
    return mapper.best(problem, dict(imbalance=_IMBALANCE, seed=seed), [
        *(dict(imbalance=each, seed=seed) for each in _IMBALANCES),
        dict(imbalance=_IMBALANCES[0], seed=seed + 1)
    ])


def _most_vertices(seconds: float | None) -> int:
  """Vertices of all mappings of one round in a time budget."""
  if seconds is None:
    return _MOST_VERTICES
  return int(min(_MOST_VERTICES, seconds * _VERTICES_PER_S))
