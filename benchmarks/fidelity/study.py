"""Prices and measures the same placements, graph by graph."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from typing import Callable, Mapping

import numpy as np

from benchmarks.fidelity import graphs
from benchmarks.fidelity import placements
from gdp_grappler import files
from gdp_grappler import progress
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import cluster_json
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.costs import profiled_costs
from gdp_grappler.evaluation.link_timing import ping_pong
from gdp_grappler.evaluation.measuring import local_workers
from gdp_grappler.evaluation.measuring import measurer as measurer_lib
from gdp_grappler.evaluation.ordering import control_edges
from gdp_grappler.evaluation.profiling import profiler
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph import op_graph

WORKERS = 2  # Servers on this machine, each on its own cores.
# Least predicted gain of an order that is measured.
ORDER_GAIN = .1
# Largest number of measured orders per graph. The largest gains come first.
ORDER_COUNT = 6
_PLACERS = ('m_etf', 'local_search')


@dataclasses.dataclass(frozen=True)
class Row:
  """Simulated and measured steps of a placement.

  Attributes:
    graph: Name of the graph.
    label: How the placement was made.
    simulated_s: Seconds of the simulated step, first in, first out.
    ordered_s: Seconds of the simulated step with the critical path first.
    measured_s: Median seconds of real steps, in TensorFlow's own order.
    spread_s: Interquartile range of the real steps, in seconds.
    problem: Why the placement could not be measured; '' if it was measured.
  """

  graph: str
  label: str
  simulated_s: float
  ordered_s: float
  measured_s: float
  spread_s: float
  problem: str = ''


@dataclasses.dataclass(frozen=True)
class Ordered:
  """Steps of a placement in TensorFlow's own order and in a given order.

  Attributes:
    graph: Name of the graph.
    label: How the placement was made.
    edges: Control edges that force the order.
    simulated: Step with these edges over the step without.
    measured: The same ratio for the medians of real steps.
    spread: Sum of the relative interquartile ranges of both.
  """

  graph: str
  label: str
  edges: int
  simulated: float
  measured: float
  spread: float


def measured_cluster(tell: Callable[[str], None]) -> cluster_lib.Cluster:
  """Returns the workers with links that are timed now."""
  with local_workers.LocalWorkers(WORKERS) as workers:
    cluster = local_workers.cluster(WORKERS)
    return ping_pong.apply(
        cluster, ping_pong.measure(cluster, workers.target, progress=tell))


def run(name: str, cluster: cluster_lib.Cluster, folder: pathlib.Path,
        tell: Callable[[str],
                       None], seed: int = 0) -> tuple[list[Row], list[Ordered]]:
  """Studies one graph. Results of former runs are read from the folder.

  Of `graphs.FOR_ORDER` only the orders are studied.
  """
  source = graphs.build(name)
  graph = graph_def_io.read(source)
  profile = profiler.profile_local_workers(source, WORKERS,
                                           cache_dir=folder / 'cache',
                                           tell=tell)
  simulator = simulator_lib.Simulator(cluster,
                                      profiled_costs.ProfiledCostModel(profile))
  layers = graphs.layers(graph)
  suite = placements.suite(
      graph, simulator, layers,
      placements.modules_by_name(graph, layers, graphs.MODULE), seed)
  suite |= placements.by_placers(graph, simulator, _PLACERS, seed)
  with measurer_lib.Measurer(
      source, cluster, local_workers=WORKERS, steps=15,
      cache_dir=folder / 'cache' / 'measurements',
      control_edges=control_edges.chooser(simulator)) as measurer:
    rows = [] if name in graphs.FOR_ORDER else _measure(
        name, graph, suite, simulator, measurer, tell, seed)
    return rows, _orders(name, graph, suite, simulator, measurer, tell)


def _measure(name: str, graph: op_graph.OpGraph,
             suite: Mapping[str, placement_lib.Placement],
             simulator: simulator_lib.Simulator,
             measurer: measurer_lib.Measurer, tell: Callable[[str], None],
             seed: int) -> list[Row]:
  """Measures placements in random order, so that drift affects all alike."""
  rows = {}
  labels = list(suite)
  progress.doing(f'measuring placements of {name}')
  for count, index in enumerate(
      np.random.default_rng(seed).permutation(len(labels))):
    label = labels[index]
    placement = suite[label]
    order = control_edges.control_edges(graph, placement, simulator)
    real = measurer.evaluate(graph, placement)
    problem = '' if real.valid else real.violations[0].message
    rows[label] = Row(name, label, order.fifo_s, order.ordered_s,
                      real.step_time_s, real.spread_s, problem)
    progress.reached((count + 1) / len(labels))
    tell(f'{name} {count + 1}/{len(labels)} {label}: simulated '
         f'{order.fifo_s * 1e3:.1f} ms, measured '
         f'{real.step_time_s * 1e3:.1f} ms')
  return [rows[label] for label in labels]


def _orders(name: str, graph: op_graph.OpGraph,
            suite: Mapping[str, placement_lib.Placement],
            simulator: simulator_lib.Simulator, measurer: measurer_lib.Measurer,
            tell: Callable[[str], None]) -> list[Ordered]:
  """Measures the placements with the largest predicted gains of an order."""
  found = []
  for label, placement in suite.items():
    order = control_edges.control_edges(graph, placement, simulator)
    if order.with_edges_s <= order.fifo_s * (1 - ORDER_GAIN):
      found.append((order.with_edges_s / order.fifo_s, label, placement, order))
  result = []
  progress.doing(f'measuring orders of {name}')
  for ratio, label, placement, order in sorted(
      found, key=lambda item: item[0])[:ORDER_COUNT]:
    ordered = dataclasses.replace(placement, priorities=order.priorities)
    plain = measurer.evaluate(graph, placement)
    forced = measurer.evaluate(graph, ordered)
    if plain.valid and forced.valid:
      gain = forced.step_time_s / plain.step_time_s
      spread = sum(e.spread_s / e.step_time_s for e in (plain, forced))
      result.append(
          Ordered(name, label, len(order.control_edges), ratio, gain, spread))
      tell(f'{name} {label}: {len(order.control_edges)} control edges, '
           f'simulated {ratio:.3f}, measured {gain:.3f} of the step')
  return result


def save(path: pathlib.Path, rows: list[Row], orders: list[Ordered],
         cluster: cluster_lib.Cluster) -> None:
  """Writes everything as compressed JSON."""
  files.write_compressed_json(
      path, {
          'cluster': json.loads(cluster.to_json()), 'rows': [
              dataclasses.asdict(row) for row in rows
          ], 'orders': [dataclasses.asdict(order) for order in orders]
      })


def load(
    path: pathlib.Path) -> tuple[list[Row], list[Ordered], cluster_lib.Cluster]:
  """Reads a file that `save` wrote.

  Raises:
    GdpError: the file cannot be read.
  """
  found = files.read_compressed_json(path)
  return ([Row(**row) for row in found['rows']],
          [Ordered(**order) for order in found['orders']],
          cluster_json.from_fields(found['cluster'], str(path)))
