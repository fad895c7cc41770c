"""Placements by layer, time, variable and branch: the best of many by price."""

from __future__ import annotations

import operator
from typing import Iterator

from absl import logging
import numpy as np

from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.graph.structure import coordinates as coordinates_lib
from gdp_grappler.placers import group_graph
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.coordinates import coordinate_maps
from gdp_grappler.placers.partitioning import partitioning
from gdp_grappler.placers.search import annealing
from gdp_grappler.placers.search.memory import memory_repair
from gdp_grappler.placers.simple import single_device

# Those that are priced, the best balanced of all; of large graphs only so many
# that this many ops are priced, and few if a stopwatch prices them.
_PRICED, _PRICED_OPS, _FEWEST, _MEASURED = 200, 4_000_000, 32, 16
_BATCH = 16
# A device this much slower than the fastest is not counted on: a client's CPU
# beside servers. Maps over all devices are tried, too.
_FAR_SLOWER = 10.
# How many are told of, the best by price.
_TOLD = 4


class StructuredPlacer:
  """Maps coordinates of repeated structure to devices, many ways.

  Blocks of layers or time steps, both dealt out in turn, grids of two
  coordinates and skewed maps of them (see `coordinate_maps`), over all
  accelerators, half of them, and so on. No op moves alone: whole layers, time
  steps and branches do, which is what a search that moves ops never finds. The
  best balanced are priced, for as long as there is time, and the best by price
  is taken.

  Coordinates are read from names and from the order in which variables are used
  (`structure.coordinates`). Of a graph that tells none of them nothing is
  proposed; everything is on the best device then.
  """

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`."""
    return self.proposals(problem)[0]

  def proposals(
      self, problem: placer_lib.Problem) -> tuple[placement_lib.Placement, ...]:
    """See `Proposer`: the best by price, everything on one device among them.

    Raises:
      InfeasiblePlacementError: the graph cannot be placed on the cluster.
    """
    deadline = problem.deadline()
    judge = _Judge(problem)
    judge.see(single_device.of_each_kind(problem))
    for weights in (group_graph.work(problem,
                                     np.array(problem.cluster.accelerators)),
                    group_graph.memory_bytes(problem)):
      rows = candidates(problem, weights)
      if not len(rows):
        logging.info('Graph "%s" shows no repeated structure.',
                     problem.graph.name)
        break
      judge.see(rows)
      if judge.fits:
        break
    if not judge.fits:
      judge.see(
          memory_repair.MemoryRepair(problem).fitted(np.stack(
              judge.best(_TOLD))))
    # Where few placements fit, not every start leads to one.
    for row in judge.best(_TOLD):
      if judge.fits or deadline.passed:
        break
      judge.see(annealing.relieved(problem, row, deadline=deadline)[None])
    return tuple(
        placement_lib.from_groups(problem.graph, row, problem.cluster)
        for row in judge.best(_TOLD))


def candidates(problem: placer_lib.Problem, weights: np.ndarray) -> np.ndarray:
  """int32 [K, G], legal placements by coordinates, the most promising first.

  Those that are best balanced, and those with the least sum of the busiest
  device's work and of what is sent.

  Args:
    problem: G groups.
    weights: float64 [G], what is to be balanced.

  Returns:
    None of them (K = 0) where the graph shows no structure, or there is one
    accelerator.
  """
  devices = partitioning.accelerators(problem)
  cells = coordinate_maps.cells(problem.graph,
                                coordinates_lib.of(problem.graph))
  counts = _counts(_shares(problem, devices))
  if cells is None or not counts:
    return np.zeros((0, problem.graph.num_groups), np.int32)
  work = cells.totals(weights)
  maps = coordinate_maps.Maps(cells, work)
  # Half of them on all devices, a quarter on half of them, ...
  left, result = _affordable(problem), []
  for count in counts:
    workers = devices[:count]
    rows = maps.rows(_shares(problem, workers))
    most = left if count == counts[-1] else -(-left // 2)
    rows = rows[_promising(_scores(problem, cells, work, rows, workers), most)]
    result.append(workers[rows].astype(np.int32)[:, cells.groups])
    left -= len(rows)
  return constraints.made_legal(np.concatenate(result), problem.allowed,
                                problem.cluster.host)


def _scores(problem: placer_lib.Problem, cells: coordinate_maps.Cells,
            work: np.ndarray, rows: np.ndarray,
            workers: np.ndarray) -> np.ndarray:
  """float64 [2, K]: the busiest part, without and with what parts send."""
  shares = _shares(problem, workers) * len(workers)
  busiest = (cells.loads(rows, work, len(workers)) / shares).max(axis=1)
  _, bandwidth, _ = problem.cluster.link_arrays
  apart = ~np.eye(len(workers), dtype=bool)
  s_per_byte = float((1 / bandwidth[np.ix_(workers, workers)][apart]).mean())
  message = partitioning.message_bytes(problem.cluster, workers)
  size, tensors = cells.cuts(rows)
  sent = size + message * tensors
  return np.stack([busiest, busiest + sent * s_per_byte / len(workers)])


def _promising(scores: np.ndarray, most: int) -> np.ndarray:
  """int [at most `most`], the best by either score in turns."""
  ranked = np.argsort(scores, axis=1, kind='stable').T.reshape(-1)
  first = np.sort(np.unique(ranked, return_index=True)[1])
  return ranked[first[:most]]


class _Judge:
  """Prices placements of groups and remembers all."""

  def __init__(self, problem: placer_lib.Problem) -> None:
    self._problem = problem
    self._deadline = problem.deadline()
    # By the bytes of the placements, in the order in which they were seen.
    self._seen: dict[bytes, tuple[evaluator_lib.Key, np.ndarray]] = {}

  @property
  def fits(self) -> bool:
    """Whether any of them runs."""
    return not min(key for key, _ in self._seen.values())[0]

  def see(self, rows: np.ndarray) -> None:
    """Prices int [K, G]; of what is not told of no more is asked.

    The first few are, however late it is: most time went into finding them.
    """
    rows = np.asarray(rows, np.int32)
    new = {
        row.tobytes(): row for row in rows if row.tobytes() not in self._seen
    }
    for index, batch in enumerate(_batches(list(new.values()))):
      if index and self._deadline.passed and self.fits:
        break
      prices = self._problem.evaluator.price_groups(self._problem.graph,
                                                    np.stack(batch),
                                                    self._ceiling_s)
      for key, row in zip(prices.keys(), batch):
        self._seen[row.tobytes()] = key, row

  def best(self, most: int) -> list[np.ndarray]:
    """Placements int [G], the best first, no two alike."""
    return [row for _, row in self._ranked[:most]]

  @property
  def _ranked(self) -> list[tuple[evaluator_lib.Key, np.ndarray]]:
    return sorted(self._seen.values(), key=operator.itemgetter(0))

  @property
  def _ceiling_s(self) -> float:
    """The step of the last one that would be told of."""
    told = self._ranked[:_TOLD]
    if len(told) < _TOLD or told[-1][0][0]:
      return np.inf
    return told[-1][0][-1]


def _batches(rows: list[np.ndarray]) -> Iterator[list[np.ndarray]]:
  for first in range(0, len(rows), _BATCH):
    yield rows[first:first + _BATCH]


def _affordable(problem: placer_lib.Problem) -> int:
  """How many are priced."""
  if not problem.evaluator.simulated:
    return _MEASURED
  affordable = _PRICED_OPS // max(problem.graph.num_ops, 1)
  return min(max(affordable, _FEWEST), _PRICED)


def _counts(shares: np.ndarray) -> list[int]:
  """All k devices, then those that are fast, half of them, ..., two.

  Args:
    shares: float64 [k], speeds, the fastest first.
  """
  fast = int((shares * _FAR_SLOWER >= shares[0]).sum())
  result = [len(shares)] if fast < len(shares) else []
  while fast > 1:
    result.append(fast)
    fast //= 2
  return result


def _shares(problem: placer_lib.Problem, workers: np.ndarray) -> np.ndarray:
  """float64 [k], in proportion to speed."""
  speeds = 1 / np.maximum(problem.op_seconds[:, workers].sum(axis=0), 1e-30)
  return speeds / speeds.sum()
