"""Prices placements by timing real steps."""

from __future__ import annotations

import atexit
import hashlib
import os
from typing import Any, Callable

import numpy as np

from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator
from gdp_grappler.evaluation.costs import roofline
from gdp_grappler.evaluation.measuring import bench as bench_lib
from gdp_grappler.evaluation.measuring import local_workers
from gdp_grappler.evaluation.measuring import measure_config
from gdp_grappler.evaluation.measuring import measurement_cache
from gdp_grappler.evaluation.measuring import measuring_worker
from gdp_grappler.evaluation.measuring import runnable
from gdp_grappler.evaluation.measuring import timing
from gdp_grappler.evaluation.ordering import control_edges as control_edges_lib
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import source_graph
from gdp_grappler.processes import messages


class Measurer(evaluator.Evaluator):
  """Prices placements by the measured time of real steps.

  Steps run in child processes on synthetic data (`measuring.runnable`).
  Grappler and soft placement are off, so that ops run where they were placed.
  A placement whose step fails, hangs or crashes a process gets a violation of
  kind 'run', and the process is started again. If a process is killed from
  outside, the placement runs again. Each placement is measured once, and its
  result is kept.

  `peak_bytes` of an evaluation are the bytes of the variables on a device plus
  the most memory that the device's allocator records for one step. Devices that
  share a memory are added up. The bytes are 0 if the step did not run. If an
  allocator keeps no records, only variables count.

  Attributes:
    cluster: Cluster whose devices placements index.
  """

  simulated = False

  def __init__(self, source: source_graph.SourceGraph,
               cluster: cluster_lib.Cluster, *, control_edges: Callable[
                   [op_graph.OpGraph, placement_lib.Placement], np.ndarray]
               | None = None, **settings: Any) -> None:
    """Prepares the graph; the first evaluation starts the processes.

    Args:
      source: The graph, as it was read.
      cluster: Devices of this machine, of the target or of local workers.
      control_edges: Function that returns control edges for a placement with
        priorities: int [C, 2], the second op waits for the first. None means
        `control_edges.chooser` with a simulator of `cluster`.
      **settings: Fields of `measure_config.MeasureConfig`.

    Raises:
      MeasurementError: synthetic data for the graph cannot be made, or settings
        contradict each other or are not above 0.
    """
    self._config = config = measure_config.MeasureConfig(**settings)
    self._graph = runnable.convert(source, config.batch_size)
    self.cluster = cluster
    self._control_edges = control_edges or control_edges_lib.chooser(
        simulator.Simulator(cluster))
    self._op_names: tuple[str, ...] | None = None
    self._cores = measure_config.divided_cores(config)
    self._bench: bench_lib.Bench | None = None
    self._known = measurement_cache.MeasurementCache(config.cache_dir,
                                                     source.name,
                                                     self._context())
    atexit.register(self.close)

  def __enter__(self) -> Measurer:
    return self

  def __exit__(self, *unused_error: object) -> None:
    self.close()

  def close(self) -> None:
    """Ends the processes; a later evaluation starts new ones."""
    atexit.unregister(self.close)
    if self._bench is not None:
      self._bench.close()

  def op_seconds(self, graph: op_graph.OpGraph) -> np.ndarray:
    """float64 [N, D], estimates by the roofline: single ops are not timed."""
    return roofline.Roofline().op_seconds(graph, self.cluster)

  def evaluate(self, graph: op_graph.OpGraph,
               placement: placement_lib.Placement) -> evaluator.Evaluation:
    """Runs one placement.

    Args:
      graph: The graph that was read from `source`.
      placement: Placement on devices of `cluster`.

    Raises:
      MeasurementError: the graph or the cluster is another one, the target
        cannot be reached, or a device is missing.
    """
    if placement.cluster.device_names != self.cluster.device_names:
      raise errors.MeasurementError(
          f'The placement is on cluster "{placement.cluster.name}", but '
          f'"{self.cluster.name}" is measured. Place on that one.')
    if self._op_names is None:
      self._check_names(graph)
    if graph.names != self._op_names:
      raise errors.MeasurementError(
          f'Graph "{graph.name}" is not the one that this measurer runs. Make '
          'a measurer for each graph.')
    if violations := placement.violations(graph):
      return evaluator.Evaluation.broken(violations, self.cluster,
                                         simulated=False)
    request = self._request(graph, placement)
    key = _key(request)
    if key not in self._known:
      self._measure(key, placement, request)
    return self._known[key]

  def _check_names(self, graph: op_graph.OpGraph) -> None:
    known = set(graph.names)
    lost = [
        owner for owner in self._graph.owners if owner and owner not in known
    ]
    if lost:
      raise errors.MeasurementError(
          f'Graph "{graph.name}" lacks op "{lost[0]}" of the graph to '
          'measure. Give the graph that was read from the same source.')
    self._op_names = graph.names

  def _request(self, graph: op_graph.OpGraph,
               placement: placement_lib.Placement) -> measuring_worker.Request:
    if placement.priorities is None:
      return measuring_worker.Request(placement.devices)
    return measuring_worker.Request(
        placement.devices,
        tuple((graph.names[first], graph.names[second])
              for first, second in self._control_edges(graph, placement)))

  def _measure(self, key: bytes, placement: placement_lib.Placement,
               request: measuring_worker.Request) -> None:
    if self._bench is None:
      self._bench = self._new_bench()
    answer = self._bench.measure(request)
    # A failure stays in the cache only if it would repeat. With a longer
    # timeout the step might run.
    usual_s = measure_config.MeasureConfig.timeout_s
    hurried = self._config.timeout_s < usual_s
    lasting = not (isinstance(answer, messages.Failure) and
                   (hurried or answer.lost))
    self._known.add(key, self._evaluation(placement, answer), lasting)

  def _new_bench(self) -> bench_lib.Bench:
    config = self._config
    assert self._op_names is not None  # Set by the first evaluation.
    return bench_lib.Bench(
        measuring_worker.Setup(self._graph, self._op_names,
                               self.cluster.device_names,
                               gpu_splits(self.cluster), config.target,
                               config.connect_s, config.timeout_s,
                               self._schedule()), *self._cores)

  def _schedule(self) -> timing.Schedule:
    config = self._config
    return timing.Schedule(config.warmup, config.steps, config.budget_s,
                           config.tolerance)

  def _context(self) -> bytes:
    """All data besides the placement on which a measured time depends."""
    import tensorflow as tf
    graph = self._graph.graph_def.SerializeToString(deterministic=True)
    parts = (tf.__version__, self.cluster.device_names,
             self.cluster.memory_pools.tolist(), self._graph.targets,
             gpu_splits(self.cluster), self._schedule(), self._config.target,
             self._cores, local_workers.INTER_OP_THREADS,
             len(os.sched_getaffinity(0)))
    return graph + repr(parts).encode()

  def _evaluation(
      self, placement: placement_lib.Placement,
      answer: measuring_worker.Timing | messages.Failure
  ) -> evaluator.Evaluation:
    if isinstance(answer, messages.Failure):
      return evaluator.Evaluation.broken(
          [placement_lib.Violation('run', answer.message)], self.cluster,
          simulated=False)
    return evaluator.Evaluation(answer.step_time_s,
                                self._peaks(placement, answer.peak_bytes), (),
                                simulated=False, spread_s=answer.spread_s)

  def _peaks(self, placement: placement_lib.Placement,
             step_bytes: tuple[int, ...]) -> tuple[int, ...]:
    """[P], most bytes in each memory pool."""
    pools = self.cluster.memory_pools
    assert self._op_names is not None  # Set by the first evaluation.
    result = np.zeros(len(self.cluster.pool_bytes), np.int64)
    np.add.at(result, pools, step_bytes)
    device = dict(zip(self._op_names, placement.devices.tolist()))
    for variable in self._graph.variables:
      result[pools[device[variable.owner]]] += variable.size_bytes
    return tuple(result.tolist())


def gpu_splits(cluster: cluster_lib.Cluster) -> tuple[tuple[int, ...], ...]:
  """Bytes of the logical GPUs of each physical GPU; () if none is split."""
  physical: dict[str, list[int]] = {}
  for device in cluster.devices:
    if device.type == 'GPU':
      card = device.card or device.compute
      physical.setdefault(card, []).append(device.memory_bytes)
  if all(len(parts) == 1 for parts in physical.values()):
    return ()
  return tuple(tuple(parts) for parts in physical.values())


def _key(request: measuring_worker.Request) -> bytes:
  return hashlib.sha256(request.devices.tobytes()
                        + repr(request.control_edges).encode()).digest()
