"""The best by price of many maps of coordinates to devices."""

from __future__ import annotations

from absl import logging
import numpy as np

from gdp_grappler import deadlines
from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import one_device
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.graph.structure import coordinates as coordinates_lib
from gdp_grappler.placers import group_graph
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.coordinates import coordinate_maps
from gdp_grappler.placers.partitioning import partitioning
from gdp_grappler.placers.search import annealing
from gdp_grappler.placers.search import priced_placements
from gdp_grappler.placers.search.memory import memory_repair

# Largest number of maps that are priced.
_PRICED = 200
# Largest number of ops of all priced maps together. So the placer prices fewer
# maps of a large graph.
_PRICED_OPS = 4_000_000
# Least number of maps that are priced, even of a large graph.
_FEWEST = 32
# Number of maps that are priced if a price is a real step.
_MEASURED = 16
# Number of maps that are priced together.
_BATCH = 8
# Only maps over all devices use a device that is slower than the fastest one by
# this factor. An example is the slow CPU of a client beside CPUs of servers.
_FAR_SLOWER = 10.
# Number of placements that the placer proposes, the best by price.
_NUM_PROPOSALS = 4


class StructuredPlacer:
  """Maps the coordinates of repeated structure to devices, in many ways.

  The maps are those of `coordinate_maps`, over all accelerators, half of them,
  and so on. A map places whole layers, time steps, variables or branches. A
  search that moves single ops rarely finds such placements. The placer prices
  the most promising maps until its time is over, and keeps the best by price.

  Coordinates come from the names of ops and from the order in which a step uses
  variables (`graph.structure.coordinates`). For a graph without coordinates the
  placer proposes only placements on one device, repaired if none fits.
  """

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`."""
    return self.proposals(problem)[0]

  def proposals(
      self, problem: placer_lib.Problem) -> tuple[placement_lib.Placement, ...]:
    """See `Proposer`. Placements of all ops on one device are candidates, too.

    Raises:
      InfeasiblePlacementError: the graph cannot be placed on the cluster.
    """
    deadline = problem.deadline()
    priced = priced_placements.PricedPlacements(problem.graph,
                                                problem.evaluator)
    priced.add(
        one_device.of_each_kind(problem.cluster, problem.allowed,
                                problem.op_seconds))
    for weights in (None, group_graph.memory_bytes(problem.graph)):
      rows = candidates(problem, weights)
      if not len(rows):
        logging.info('Graph "%s" shows no repeated structure.',
                     problem.graph.name)
        break
      _see(priced, rows, deadline)
      if priced.fits:
        break
    if not priced.fits:
      _see(
          priced,
          memory_repair.MemoryRepair(problem).fitted(
              priced.ranked(_NUM_PROPOSALS), deadline), deadline)
    # A search may need several starts to find a placement that fits.
    for row in priced.ranked(_NUM_PROPOSALS):
      # If a price is a real step, a search would take too long.
      if priced.fits or deadline.passed or not problem.evaluator.simulated:
        break
      priced.add([annealing.find_fitting(problem, row, deadline=deadline)])
    return tuple(
        placement_lib.from_groups(problem.graph, row, problem.cluster)
        for row in priced.ranked(_NUM_PROPOSALS))


def candidates(problem: placer_lib.Problem,
               weights: np.ndarray | None = None) -> np.ndarray:
  """int32 [K, G], legal placements by coordinates.

  Maps that use all devices come before maps that use fewer devices. Maps with
  the same number of devices are sorted, the most promising first.

  There are two criteria: the work of the busiest device, and this work plus the
  seconds of the transfers. The best maps by each criterion alternate.

  Args:
    problem: G groups.
    weights: float64 [G], work of each group, which the maps balance; by default
      seconds.

  Returns:
    K is 0 if the graph has no coordinates, or if there is one accelerator.
  """
  devices = partitioning.accelerators(problem.cluster, problem.busy_seconds)
  tiles = coordinate_maps.tiles(problem.graph,
                                coordinates_lib.of(problem.graph))
  counts = _counts(_shares(problem, devices))
  if tiles is None or not counts:
    return np.zeros((0, problem.graph.num_groups), np.int32)
  if weights is None:
    weights = group_graph.work(problem.graph, problem.busy_seconds,
                               np.array(problem.cluster.accelerators))
  work = tiles.totals(weights)
  # Half of the maps use all devices, a quarter use half of the devices, ...
  left, result = _affordable(problem), []
  for count in counts:
    workers = devices[:count]
    shares = _shares(problem, workers)
    rows = coordinate_maps.maps(tiles, work, shares)
    scores = tiles.scores(rows, work, shares * count,
                          partitioning.mean_link(problem.cluster, workers))
    most = left if count == counts[-1] else -(-left // 2)
    rows = rows[_promising(scores, most)]
    result.append(workers[rows].astype(np.int32)[:, tiles.groups])
    left -= len(rows)
  return constraints.made_legal(np.concatenate(result), problem.allowed,
                                problem.cluster.host)


def _promising(scores: np.ndarray, most: int) -> np.ndarray:
  """int [at most `most`], rows with the best scores, by both scores in turn."""
  ranked = np.argsort(scores, axis=1, kind='stable').T.reshape(-1)
  first = np.sort(np.unique(ranked, return_index=True)[1])
  return ranked[first[:most]]


def _see(priced: priced_placements.PricedPlacements, rows: np.ndarray,
         deadline: deadlines.Deadline) -> None:
  """Prices placements until the time is over.

  The first batch is always priced, because computing the maps has taken time.

  Args:
    priced: Placements so far; gets the new ones.
    rows: int [K, G], in the order of pricing.
    deadline: After this time, pricing ends as soon as a placement fits.
  """
  fresh = [row for row in rows if not priced.contains(row)]
  # The first prices give a ceiling, so that further prices take less time.
  begins = [0, *range(_NUM_PROPOSALS, len(fresh), _BATCH)]
  for begin, end in zip(begins, [*begins[1:], len(fresh)]):
    if begin and deadline.passed and priced.fits:
      break
    priced.add(fresh[begin:end], ceiling_s=priced.ceiling_s(_NUM_PROPOSALS))


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
  # Shares by `busy_seconds` made steps longer on cards of different speed.
  speeds = partitioning.speeds(problem.cluster, problem.op_seconds, workers)
  return speeds / speeds.sum()
