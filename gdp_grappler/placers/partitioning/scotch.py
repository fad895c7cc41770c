"""Static mapping by Scotch.

F. Pellegrini and J. Roman: SCOTCH: A software package for static mapping by
dual recursive bipartitioning of process and architecture graphs. HPCN-Europe
1996, 493-498; F. Pellegrini: Distillating knowledge about Scotch. Dagstuhl
Seminar Proceedings 09061, 2009.
"""

from __future__ import annotations

import numpy as np

from gdp_grappler import extras
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.partitioning import mapping
from gdp_grappler.placers.partitioning import partition_process
from gdp_grappler.placers.partitioning import partitioning

# Allowed excess of a part, as a share of its weight; the library's default.
_IMBALANCE = 0.01
# Further allowed excesses that are tried.
_IMBALANCES = (0.05, 0.2, 0.5)
# Number of seeds that are tried.
_NUM_SEEDS = 3
# Largest number of vertices of all mappings of one round together. It limits
# the time of a large graph to seconds.
_MOST_VERTICES = 500_000


class ScotchPlacer:
  """The best by price of many mappings onto the topology.

  As in the baseline of the hierarchical planner (Mirhoseini et al. 2018,
  section 3.2), Scotch gets the cost of each op, the bytes of each edge, the
  speeds of the devices and the speeds of the links. Groups that may be on only
  one device are fixed vertices. The placer first tries all devices, CPUs
  included, and several numbers of accelerators. Then it tries other balances
  and other orders of the vertices on the devices of the best proposal.
  """

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`."""
    extras.require('The placer "scotch"', 'scotchpy')
    seed = problem.seed
    return mapper('scotch', _MOST_VERTICES).best(
        problem, arguments(_IMBALANCE, seed, True), [
            *(arguments(imbalance, seed, True) for imbalance in _IMBALANCES),
            arguments(_IMBALANCE, seed, False),
            *(arguments(_IMBALANCES[0], seed + more, True)
              for more in range(1, _NUM_SEEDS))
        ])


def mapper(placer: str, most_vertices: int,
           topology: bool = True) -> mapping.Mapper:
  """Scotch for one placer.

  Args:
    placer: Name of the placer, for errors.
    most_vertices: See `mapping.Mapper`.
    topology: Whether distances between devices count in the mapping. If not,
      all cut bytes cost the same. After the mapping, parts are assigned to
      devices by distance in both cases.
  """
  # Scotch 7.0.16 crashes on some small graphs (an invalid write), so it has a
  # process of its own.
  worker = partition_process.Worker('scotch', placer,
                                    {'SCOTCH_PTHREAD_NUMBER': '1'})
  return mapping.Mapper(worker, lambda target: _distances(target, topology),
                        most_vertices)


def arguments(imbalance: float, seed: int, balanced: bool) -> mapping.Arguments:
  """Arguments of one mapping.

  Args:
    imbalance: Allowed excess of a part, as a share of its weight.
    seed: Seed of the mapping.
    balanced: Whether Scotch prefers balance to a small cut.
  """
  return {'imbalance': imbalance, 'seed': seed, 'balanced': balanced}


def _distances(target: partitioning.Target,
               topology: bool) -> np.ndarray | None:
  """Distances for Scotch; None for equal devices at equal distances.

  Scotch maps best onto an architecture without distances.
  """
  count = len(target.devices)
  if topology and not target.uniform:
    return target.distances
  if np.allclose(target.shares, 1 / count):
    return None
  return np.ones((count, count)) - np.eye(count)
