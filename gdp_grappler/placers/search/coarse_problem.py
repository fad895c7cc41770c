"""A large problem made smaller by the coordinates of what repeats itself."""

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

# What tells cells apart: the first that make enough nodes.
_COORDINATES = ('layer', 'segment'), ('layer', 'segment', 'variable')
# What tells layers apart, and what parts of them.
_LAYER, _PART = 'layer', 'strand'
# The share of its work by which a cell is judged.
_MOST = .5
# Of an op beside its kernel, in seconds, so that ops without one count where
# there is nothing else.
_LEAST_WORK = 1e-15


class CoarseProblem:
  """A problem whose groups are cells of another one's.

  A price in it takes a tenth of the other one's, and is within a few percent of
  it where all groups of a cell may be, and are, on its device.

  Attributes:
    problem: C groups; priced without luck.
    cells: int64 [G], the cell of each group of the other problem.
    config: The numbers of a search of it.
  """

  def __init__(self, fine: placer_lib.Problem,
               simulator: simulator_lib.Simulator, cells: np.ndarray,
               contracted: contraction.Contraction, names: tuple[str, ...],
               coordinates: np.ndarray,
               config: search_config.SearchConfig) -> None:
    """See `of`."""
    self._fine, self._names, self.cells = fine, names, cells
    self.config = config
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
        given_allowed=_allowed(fine, cells, self._work))

  def wholes(self) -> CoarseProblem:
    """The same nodes, so the same prices, in fewer groups.

    Those are layers, or their parts, without the cells that do much by
    themselves, and these.
    """
    graph, fine = self.problem.graph, self._fine
    known = coordinates_lib.of(graph)
    names = tuple(name for name in (_LAYER, _PART) if name in self._names)
    work = np.bincount(self.cells, self._work, graph.num_groups)
    share = work.sum() / len(fine.cluster.accelerators)
    alone = np.where(work >= self.config.coarse.own_work * share,
                     np.arange(graph.num_groups), -1)
    (*columns, _), of_cells = unique_rows.distinct(
        [*(known[name] for name in names), alone])
    values = np.full((len(columns[0]), len(known.names)), -1)
    for name, column in zip(names, columns):
      values[:, known.names.index(name)] = column
    return CoarseProblem(
        fine, self._simulator, of_cells[self.cells],
        dataclasses.replace(self._contracted,
                            graph=graph.replace(groups=of_cells[graph.groups])),
        names, values, self.config)

  def parted(self) -> CoarseProblem | None:
    """Cells in two: what a chain of time steps waits for, and what feeds it.

    None if nothing tells them apart, or it is not smaller than the graph.
    """
    known = coordinates_lib.of(self._fine.graph)
    if _PART not in known.readable:
      return None
    found = _coarse(self._fine, known, (*self._names, _PART), self.config)
    if found is None or (found.wholes().problem.graph.num_groups
                         == self.wholes().problem.graph.num_groups):
      return None
    return found

  def projected(self, devices: np.ndarray) -> np.ndarray:
    """int32 [K, C], where most of each cell's work is, of int [K, G]."""
    count = self.problem.cluster.num_devices
    rows = np.arange(len(devices))[:, None] * self.problem.graph.num_groups
    where = (rows + self.cells) * count + devices
    work = np.bincount(where.reshape(-1), np.tile(self._work, len(devices)),
                       len(devices) * self.problem.graph.num_groups * count)
    work = work.reshape(len(devices), -1, count)
    work = np.where(self.problem.allowed, work, -1.)
    return work.argmax(axis=2).astype(np.int32)

  def spread(self, devices: np.ndarray) -> np.ndarray:
    """int32 [K, G], groups where their cells int [K, C] are, or the host."""
    return constraints.made_legal(devices[:, self.cells], self._fine.allowed,
                                  self._fine.cluster.host)


class _Simulator(simulator_lib.Simulator):
  """Of one graph, whose types do not say what edges may join."""

  def __init__(self, cluster: cluster_lib.Cluster,
               cost_model: fixed_costs.FixedCostModel, threads: int,
               may: np.ndarray) -> None:
    super().__init__(cluster, cost_model, threads)
    self._may = may

  def orderable(self, graph: op_graph.OpGraph) -> np.ndarray:
    """bool [M], as of `Simulator`."""
    del graph
    return self._may


def _costs(problem: placer_lib.Problem, simulator: simulator_lib.Simulator,
           contracted: contraction.Contraction) -> fixed_costs.FixedCostModel:
  """What nodes take: as much of the host and of a GPU as their ops.

  A node runs once. So the gaps between its ops' kernels count as seconds, and
  what the host does for all ops but one as work for the node.
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
  """float64 [C, D], of a node over its seconds; None where no card is cut."""
  if (problem.cluster.cut_cards < 0).all():
    return None
  seconds = problem.op_seconds + _LEAST_WORK
  shares = simulator.cost_model.card_shares(problem.graph, problem.cluster,
                                            problem.op_seconds)
  # Rounding may not take it above all of a card.
  return np.minimum(
      contracted.summed(seconds * shares) / contracted.summed(seconds), 1)


def _work(problem: placer_lib.Problem) -> np.ndarray:
  """float64 [G], seconds of each group where it may be and is quickest."""
  seconds = problem.graph.group_sums(problem.op_seconds + _LEAST_WORK)
  return np.where(problem.allowed, seconds, np.inf).min(axis=1)


def _allowed(problem: placer_lib.Problem, cells: np.ndarray,
             work: np.ndarray) -> np.ndarray:
  """bool [C, D], where most of a cell's work may be; else its heaviest group.

  Of what does no work groups count.
  """
  weights = work + _LEAST_WORK
  may = np.stack(
      [np.bincount(cells, weights * column) for column in problem.allowed.T],
      axis=1)
  result = may >= _MOST * np.bincount(cells, weights)[:, None]
  by_work = np.lexsort((work, cells))
  heaviest = by_work[np.flatnonzero(np.diff(cells[by_work], append=-1))]
  nowhere = ~result.any(axis=1)
  result[nowhere] = problem.allowed[heaviest[nowhere]]
  return result


def _orderable(problem: placer_lib.Problem, simulator: simulator_lib.Simulator,
               contracted: contraction.Contraction) -> np.ndarray:
  """bool [M], nodes most of whose work edges may join."""
  may = simulator.orderable(problem.graph)
  seconds = (problem.op_seconds[:, problem.cluster.accelerators[0]]
             + _LEAST_WORK)
  own = np.bincount(contracted.nodes, seconds * may, contracted.graph.num_ops)
  return own >= _MOST * np.bincount(contracted.nodes, seconds,
                                    contracted.graph.num_ops)


def of(
    problem: placer_lib.Problem,
    config: search_config.SearchConfig | None = None) -> CoarseProblem | None:
  """A smaller problem; None if nothing repeats itself or it is not smaller.

  Args:
    problem: One with a simulator.
    config: Of a search; `search_config.DEFAULT` if None.
  """
  config = config or search_config.DEFAULT
  assert problem.simulator is not None
  known = coordinates_lib.of(problem.graph)
  if not {'layer', 'segment'} <= {*known.readable}:
    return None
  for names in _COORDINATES:
    found = _coarse(problem, known, names, config)
    if found is None:
      break
    if found.problem.graph.num_ops >= config.coarse.fewest_nodes:
      return found
  return None


def _coarse(problem: placer_lib.Problem, known: coordinates_lib.Coordinates,
            names: tuple[str, ...],
            config: search_config.SearchConfig) -> CoarseProblem | None:
  """Cells by some coordinates; None if these are too many."""
  assert problem.simulator is not None
  cells = unique_rows.distinct([known[name] for name in names])[1]
  contracted = contraction.contract(problem.graph, cells)
  most = config.coarse.most_nodes * problem.graph.num_ops
  if contracted.graph.num_ops > most:
    return None
  values = np.full((int(cells.max()) + 1, len(known.names)), -1)
  for name in names:
    values[cells, known.names.index(name)] = known[name]
  return CoarseProblem(problem, problem.simulator, cells, contracted, names,
                       values, config)
