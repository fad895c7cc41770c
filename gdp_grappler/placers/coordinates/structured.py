"""The best by price of many maps of coordinates to devices."""

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

# Maps that are priced, at the most.
_PRICED = 200
# Ops of all priced maps together, at the most, so that a large graph has fewer.
_PRICED_OPS = 4_000_000
# Maps that are priced of a large graph, at the least.
_FEWEST = 32
# Maps that are priced if a price is a real step.
_MEASURED = 16
# Maps that are priced together.
_BATCH = 16
# A device that is slower than the fastest by this factor is used only by maps
# over all devices. An example is the CPU of a client beside servers with GPUs.
_FAR_SLOWER = 10.
# Placements that the placer proposes, the best by price.
_PROPOSED = 4


class StructuredPlacer:
  """Maps the coordinates of repeated structure to devices, in many ways.

  The maps are those of `coordinate_maps`, over all accelerators, half of them,
  and so on. A map places whole layers, time steps, variables or branches. A
  search that moves single ops rarely finds such placements. The placer prices
  the most promising maps until its time is over, and keeps the best by price.

  Coordinates come from the names of ops and from the order in which a step uses
  variables (`graph.structure.coordinates`). For a graph without coordinates the
  placer proposes only the best single device.
  """

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`."""
    return self.proposals(problem)[0]

  def proposals(
      self, problem: placer_lib.Problem) -> tuple[placement_lib.Placement, ...]:
    """See `Proposer`. All ops on one device is among the candidates.

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
          memory_repair.MemoryRepair(problem).fitted(
              np.stack(judge.best(_PROPOSED))))
    # If few placements fit, a search does not find one from every start.
    for row in judge.best(_PROPOSED):
      if judge.fits or deadline.passed:
        break
      judge.see(annealing.relieved(problem, row, deadline=deadline)[None])
    return tuple(
        placement_lib.from_groups(problem.graph, row, problem.cluster)
        for row in judge.best(_PROPOSED))


def candidates(problem: placer_lib.Problem, weights: np.ndarray) -> np.ndarray:
  """int32 [K, G], legal placements by coordinates, the most promising first.

  There are two criteria: the work of the busiest device, and that work plus the
  seconds of the transfers. The best by each criterion alternate.

  Args:
    problem: G groups.
    weights: float64 [G], work of each group, which the maps balance.

  Returns:
    K is 0 if the graph has no coordinates, or if there is one accelerator.
  """
  devices = partitioning.accelerators(problem)
  cells = coordinate_maps.cells(problem.graph,
                                coordinates_lib.of(problem.graph))
  counts = _counts(_shares(problem, devices))
  if cells is None or not counts:
    return np.zeros((0, problem.graph.num_groups), np.int32)
  work = cells.totals(weights)
  maps = coordinate_maps.Maps(cells, work)
  # Half of the maps use all devices, a quarter use half of the devices, ...
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
  """float64 [2, K], work of the busiest part, without and with transfers."""
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
  """int [`most` or fewer], rows with the best scores, of both in turn."""
  ranked = np.argsort(scores, axis=1, kind='stable').T.reshape(-1)
  first = np.sort(np.unique(ranked, return_index=True)[1])
  return ranked[first[:most]]


class _Judge:
  """Prices placements of groups and keeps all prices."""

  def __init__(self, problem: placer_lib.Problem) -> None:
    self._problem = problem
    self._deadline = problem.deadline()
    # By the bytes of the placement: its key and the placement.
    self._seen: dict[bytes, tuple[evaluator_lib.Key, np.ndarray]] = {}

  @property
  def fits(self) -> bool:
    """Whether a placement fits into the memories and runs."""
    return not min(key for key, _ in self._seen.values())[0]

  def see(self, rows: np.ndarray) -> None:
    """Prices placements int [K, G] until the time is over.

    The first batch is priced in any case: the time went into making the maps.

    Args:
      rows: int [K, G], the most promising first.
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
    """Different placements int [G], the best first."""
    return [row for _, row in self._ranked[:most]]

  @property
  def _ranked(self) -> list[tuple[evaluator_lib.Key, np.ndarray]]:
    return sorted(self._seen.values(), key=operator.itemgetter(0))

  @property
  def _ceiling_s(self) -> float:
    """Step time above which a placement would not be proposed, in seconds."""
    best = self._ranked[:_PROPOSED]
    if len(best) < _PROPOSED or best[-1][0][0]:
      return np.inf
    return best[-1][0][-1]


def _batches(rows: list[np.ndarray]) -> Iterator[list[np.ndarray]]:
  for first in range(0, len(rows), _BATCH):
    yield rows[first:first + _BATCH]


def _affordable(problem: placer_lib.Problem) -> int:
  """Number of maps to price."""
  if not problem.evaluator.simulated:
    return _MEASURED
  affordable = _PRICED_OPS // max(problem.graph.num_ops, 1)
  return min(max(affordable, _FEWEST), _PRICED)


def _counts(shares: np.ndarray) -> list[int]:
  """Numbers of devices to try: all k, all fast ones, half of them, ..., 2.

  Args:
    shares: float64 [k], relative speeds of devices, the fastest first.
  """
  fast = int((shares * _FAR_SLOWER >= shares[0]).sum())
  result = [len(shares)] if fast < len(shares) else []
  while fast > 1:
    result.append(fast)
    fast //= 2
  return result


def _shares(problem: placer_lib.Problem, workers: np.ndarray) -> np.ndarray:
  """float64 [k], shares of the work in proportion to speed; sum 1."""
  speeds = 1 / np.maximum(problem.op_seconds[:, workers].sum(axis=0), 1e-30)
  return speeds / speeds.sum()
