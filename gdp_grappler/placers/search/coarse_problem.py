"""A smaller problem made of a large one by the coordinates of its ops.

A graph that repeats itself has coordinates (`graph.structure.coordinates`): the
layer and the time step of an op. The ops with equal coordinates form a tile.
Each tile becomes one group of the small problem. The group has one node, or
several nodes if one node would form a cycle with others (`graph.contraction`).
"""

from __future__ import annotations

import dataclasses

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import constraints
from gdp_grappler.evaluation.costs import fixed_costs
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.graph import contraction
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import unique_rows
from gdp_grappler.graph.structure import coordinates as coordinates_lib
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.search import search_config

# Coordinates that tell tiles apart. The first tuple that makes enough nodes is
# used.
_COORDINATES = ('layer', 'segment'), ('layer', 'segment', 'variable')
# Coordinate that tells layers apart.
_LAYER = 'layer'
# Coordinate that tells the parts of a recurrent layer apart: the ops that a
# chain of time steps waits for, and the ops that feed the chain.
_PART = 'layer_part'
# Seconds of work added to each op, so that the work of a tile without kernels
# is not 0.
_LEAST_S = 1e-15


class CoarseProblem:
  """A problem whose groups are the tiles of a large problem.

  A price in the small problem is close to the price in the large one if all
  groups of each tile may be on the device of that tile.

  Attributes:
    problem: The small problem, of C groups. Its prices are simulated steps,
      without the robust evaluator's random variations.
    tiles: int64 [G], the tile of each group of the large problem.
  """

  def __init__(self, fine: placer_lib.Problem,
               simulator: simulator_lib.Simulator, tiles: np.ndarray,
               contracted: contraction.Contraction, names: tuple[str, ...],
               coordinates: np.ndarray) -> None:
    """See `of`."""
    self._fine, self._names, self.tiles = fine, names, tiles
    graph, cluster = contracted.graph.replace(
        coordinates=coordinates), fine.cluster
    contracted = dataclasses.replace(contracted, graph=graph)
    self._simulator, self._contracted = simulator, contracted
    prices = _Simulator(cluster, _costs(fine, simulator, contracted),
                        simulator.threads,
                        _orderable(fine, simulator, contracted))
    self._work = _work(fine)
    self.problem = placer_lib.Problem(
        graph, cluster, prices, fine.seed, time_budget_s=fine.time_budget_s,
        simulator=prices, clock=fine.clock, repeatable=fine.repeatable,
        given_allowed=_allowed(fine, tiles, self._work))

  def wholes(self) -> CoarseProblem:
    """The small problem with whole layers, or parts of layers, as groups.

    A tile with much work is a group of its own. The nodes are those of this
    problem, so prices are equal.
    """
    graph, fine = self.problem.graph, self._fine
    known = coordinates_lib.of(graph)
    names = tuple(name for name in (_LAYER, _PART) if name in self._names)
    work = np.bincount(self.tiles, self._work, graph.num_groups)
    share = work.sum() / len(fine.cluster.accelerators)
    alone = np.where(work >= search_config.DEFAULT.coarse.own_work * share,
                     np.arange(graph.num_groups), -1)
    (*columns, _), of_tiles = unique_rows.distinct(
        [*(known[name] for name in names), alone])
    values = np.full((len(columns[0]), len(known.names)), -1)
    for name, column in zip(names, columns):
      values[:, known.names.index(name)] = column
    return CoarseProblem(
        fine, self._simulator, of_tiles[self.tiles],
        dataclasses.replace(self._contracted,
                            graph=graph.replace(groups=of_tiles[graph.groups])),
        names, values)

  def parted(self) -> CoarseProblem | None:
    """A small problem whose tiles are split into parts of recurrent layers.

    The ops that a chain of time steps waits for are in one tile, and the ops
    that feed the chain are in another tile.

    Returns:
      None if the graph has no such parts, or if the problem would not be much
      smaller than the graph.
    """
    known = coordinates_lib.of(self._fine.graph)
    if _PART not in known.readable:
      return None
    parted = _coarse(self._fine, known, (*self._names, _PART))
    if parted is None or (parted.wholes().problem.graph.num_groups
                          == self.wholes().problem.graph.num_groups):
      return None
    return parted

  def projected(self, devices: np.ndarray) -> np.ndarray:
    """int32 [K, C], devices of tiles of placements int [K, G].

    A tile gets the device that has most of the tile's work.

    Args:
      devices: int [K, G], placements of the large problem.
    """
    count = self.problem.cluster.num_devices
    rows = np.arange(len(devices))[:, None] * self.problem.graph.num_groups
    where = (rows + self.tiles) * count + devices
    work = np.bincount(where.reshape(-1), np.tile(self._work, len(devices)),
                       len(devices) * self.problem.graph.num_groups * count)
    work = work.reshape(len(devices), -1, count)
    work = np.where(self.problem.allowed, work, -1.)
    return work.argmax(axis=2).astype(np.int32)

  def spread(self, devices: np.ndarray) -> np.ndarray:
    """int32 [K, G], devices of groups of placements int [K, C] of tiles.

    A group gets the device of its tile, or the host if the group may not be on
    that device.

    Args:
      devices: int [K, C], placements of the small problem.
    """
    return constraints.made_legal(devices[:, self.tiles], self._fine.allowed,
                                  self._fine.cluster.host)


class _Simulator(simulator_lib.Simulator):
  """A simulator of the small graph.

  The op types of nodes do not tell which nodes control edges may join, so the
  simulator is given these nodes.
  """

  def __init__(self, cluster: cluster_lib.Cluster,
               cost_model: fixed_costs.FixedCostModel, threads: int,
               orderable: np.ndarray) -> None:
    super().__init__(cluster, cost_model, threads)
    self._orderable_nodes = orderable

  def orderable(self, graph: op_graph.OpGraph) -> np.ndarray:
    """bool [M], nodes that control edges may join; see `Simulator`."""
    del graph
    return self._orderable_nodes


def _costs(problem: placer_lib.Problem, simulator: simulator_lib.Simulator,
           contracted: contraction.Contraction) -> fixed_costs.FixedCostModel:
  """Costs of nodes: a node takes as long on host and GPU as all of its ops.

  The simulator runs a node as one op. So the seconds of the node include the
  gaps between the kernels of its ops. The host's work for the node includes the
  host's work for all ops but one.
  """
  graph, cluster = problem.graph, problem.cluster
  seconds = contracted.summed(problem.op_seconds)
  shares = _card_shares(problem, simulator, contracted)
  contended = simulator.cost_model.contention(cluster)
  gpu = cluster.accelerators[0]
  host = cluster.devices[gpu]
  if not host.asynchronous or not host.dispatch_s:
    return fixed_costs.FixedCostModel(seconds, contended, shares=shares)
  launches = problem.op_seconds[:, gpu] > 0
  runs = np.maximum(graph.executions, 1)
  prepared_s = np.where(
      launches,
      runs * (host.dispatch_s - host.lock_s)
      + simulator.cost_model.host_work(graph) * host.dispatch_s,
      runs * host.visit_s)
  of_ops = np.stack([
      launches * runs, launches * simulator.cost_model.launches(graph),
      prepared_s
  ], axis=1)
  kernel_runs, kernels, prepared_s = contracted.summed(of_ops).T
  prepared_s -= host.dispatch_s - host.lock_s
  streams = [i for i, d in enumerate(cluster.devices) if d.asynchronous]
  gap_s = np.array([cluster.devices[i].gap_s for i in streams])
  seconds[:, streams] += np.maximum(kernel_runs - 1, 0)[:, None] * gap_s
  return fixed_costs.FixedCostModel(seconds, contended, np.maximum(kernels, 1),
                                    np.maximum(prepared_s, 0) / host.dispatch_s,
                                    shares)


def _card_shares(problem: placer_lib.Problem,
                 simulator: simulator_lib.Simulator,
                 contracted: contraction.Contraction) -> np.ndarray | None:
  """float64 [M, D], share of the card that each of M nodes uses.

  None if no card is cut into several devices.
  """
  if (problem.cluster.cut_cards < 0).all():
    return None
  seconds = problem.op_seconds + _LEAST_S
  shares = simulator.cost_model.card_shares(problem.graph, problem.cluster,
                                            problem.op_seconds)
  # Rounding errors must not lead to more than a whole card.
  return np.minimum(
      contracted.summed(seconds * shares) / contracted.summed(seconds), 1)


def _work(problem: placer_lib.Problem) -> np.ndarray:
  """float64 [G], seconds of each group on its fastest allowed device."""
  seconds = problem.graph.group_sums(problem.op_seconds + _LEAST_S)
  return np.where(problem.allowed, seconds, np.inf).min(axis=1)


def _allowed(problem: placer_lib.Problem, tiles: np.ndarray,
             work: np.ndarray) -> np.ndarray:
  """bool [C, D], devices that are legal for most of a tile's work.

  If there is no such device, the devices that are legal for the group with the
  most work. Groups without work count equally.

  Args:
    problem: G groups.
    tiles: int [G], the tile of each group.
    work: float64 [G], seconds.
  """
  weights = work + _LEAST_S
  may = np.stack(
      [np.bincount(tiles, weights * column) for column in problem.allowed.T],
      axis=1)
  majority = search_config.DEFAULT.coarse.majority
  result = may >= majority * np.bincount(tiles, weights)[:, None]
  by_work = np.lexsort((work, tiles))
  heaviest = by_work[np.flatnonzero(np.diff(tiles[by_work], append=-1))]
  nowhere = ~result.any(axis=1)
  result[nowhere] = problem.allowed[heaviest[nowhere]]
  return result


def _orderable(problem: placer_lib.Problem, simulator: simulator_lib.Simulator,
               contracted: contraction.Contraction) -> np.ndarray:
  """bool [M], nodes with most of their work in ops that edges may join.

  Args:
    problem: The large problem.
    simulator: Tells which ops control edges may join.
    contracted: M nodes.
  """
  may = simulator.orderable(problem.graph)
  seconds = problem.op_seconds[:, problem.cluster.accelerators[0]] + _LEAST_S
  own = np.bincount(contracted.nodes, seconds * may, contracted.graph.num_ops)
  majority = search_config.DEFAULT.coarse.majority
  return own >= majority * np.bincount(contracted.nodes, seconds,
                                       contracted.graph.num_ops)


def of(problem: placer_lib.Problem) -> CoarseProblem | None:
  """The smaller problem of a problem.

  Args:
    problem: A problem with a simulator.

  Returns:
    None if the graph has no layers and time steps, or if the problem would have
    too few or too many nodes (`CoarseConfig`).
  """
  assert problem.simulator is not None
  known = coordinates_lib.of(problem.graph)
  if not {'layer', 'segment'} <= {*known.readable}:
    return None
  for names in _COORDINATES:
    coarse = _coarse(problem, known, names)
    if coarse is None:
      break
    if (coarse.problem.graph.num_ops
        >= search_config.DEFAULT.coarse.fewest_nodes):
      return coarse
  return None


def _coarse(problem: placer_lib.Problem, known: coordinates_lib.Coordinates,
            names: tuple[str, ...]) -> CoarseProblem | None:
  """The problem of the tiles of some coordinates; None if too many nodes."""
  assert problem.simulator is not None
  tiles = unique_rows.distinct([known[name] for name in names])[1]
  contracted = contraction.contract(problem.graph, tiles)
  most = search_config.DEFAULT.coarse.most_nodes * problem.graph.num_ops
  if contracted.graph.num_ops > most:
    return None
  values = np.full((int(tiles.max()) + 1, len(known.names)), -1)
  for name in names:
    values[tiles, known.names.index(name)] = known[name]
  return CoarseProblem(problem, problem.simulator, tiles, contracted, names,
                       values)
