"""The process in which Mt-KaHyPar runs: it maps hypergraphs and ends.

The library creates its threads once per process. It ends the process if a
mapping with given weights of parts has no solution.
"""

from __future__ import annotations

import functools
from typing import Any

import mtkahypar
import numpy as np

from gdp_grappler import cores
from gdp_grappler.placers import group_graph
from gdp_grappler.placers.partitioning import partition_process

# Integer distance that stands for the shortest distance.
_SHORTEST_LENGTH = 4
# Seeds of the library are below this number.
_SEED_RANGE = 1 << 31


def run(jobs: list[dict[str, Any]]) -> list[np.ndarray | None]:
  """The part of each vertex, int [V], for each job (of a `PartitionJob`)."""
  library = mtkahypar.initialize(cores.own(), False)
  return partition_process.in_time(
      [partition_process.PartitionJob(**job) for job in jobs],
      functools.partial(_map, library))


def _map(library: Any, job: partition_process.PartitionJob) -> np.ndarray:
  mtkahypar.set_seed(job.seed % _SEED_RANGE)
  context = library.context_from_preset(mtkahypar.PresetType.DETERMINISTIC)
  context.logging = False
  count = len(job.shares)
  if job.distances is None:
    context.set_partitioning_parameters(count, job.imbalance,
                                        mtkahypar.Objective.KM1)
    lengths = np.ones((count, count), int)
  else:
    context.set_mapping_parameters(count, job.imbalance)
    lengths = partition_process.lengths(job.distances, _SHORTEST_LENGTH)
  # The sum of the limits of all parts must not overflow.
  weights = group_graph.integers(job.graph.weights,
                                 group_graph.TOTAL_WEIGHT // count)
  context.set_individual_target_block_weights(_limits(job, weights).tolist())
  graph = _hypergraph(library, context, job, weights, int(lengths.max()))
  if job.distances is None:
    parts = graph.partition(context)
  else:
    pairs = [(a, b) for a in range(count) for b in range(a)]
    parts = graph.map_onto_graph(
        library.create_target_graph(context, count, len(pairs), pairs,
                                    [int(lengths[pair]) for pair in pairs]),
        context)
  return np.array(parts.get_partition(), int)


def _hypergraph(library: Any, context: Any, job: partition_process.PartitionJob,
                weights: np.ndarray, longest: int) -> Any:
  graph = job.graph
  pins, starts = graph.net_pins.tolist(), graph.net_starts.tolist()
  nets = [pins[a:b] for a, b in zip(starts[:-1], starts[1:])]
  result = library.create_hypergraph(
      context, graph.num_vertices, len(nets), nets, weights.tolist(),
      group_graph.integers(graph.net_bytes,
                           group_graph.TOTAL_WEIGHT // longest).tolist())
  if (job.fixed >= 0).any():
    result.add_fixed_vertices(job.fixed.tolist(), len(job.shares))
  return result


def _limits(job: partition_process.PartitionJob,
            weights: np.ndarray) -> np.ndarray:
  """int64 [k], largest weight of each part, so that there is a solution.

  A part whose share is not tiny has room for the heaviest vertex that is not
  fixed. Every part has room for the vertices that are fixed to it.
  """
  fixed, has_part = job.fixed, job.fixed >= 0
  limits = job.shares * weights.sum() * (1 + job.imbalance)
  free = weights[~has_part]
  fair = job.shares > job.shares.max() / 100
  limits[fair] = np.maximum(limits[fair], free.max(initial=0))
  own = np.bincount(fixed[has_part], weights[has_part], len(limits))
  return np.ceil(np.maximum(limits, own *
                            (1 + job.imbalance))).astype(np.int64) + 1
