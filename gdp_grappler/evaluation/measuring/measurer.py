"""Prices placements by timing real steps."""

from __future__ import annotations

import atexit
import concurrent.futures
import dataclasses
import hashlib
import os
import queue
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator
from gdp_grappler.evaluation.costs import roofline
from gdp_grappler.evaluation.measuring import bench as bench_lib
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

_DEFAULT = measure_config.MeasureConfig()


class Measurer(evaluator.Evaluator):
  """Prices placements by the measured time of real steps.

  Steps run in processes of their own on made-up data (`graph.runnable`), with
  Grappler off and without soft placement, so that what runs is what was
  placed. A placement whose step fails, hangs or takes a process down gets a
  violation of kind 'run', and the process is started again. If a process is
  killed from outside, the placement runs again. A placement is measured once
  and remembered.

  `peak_bytes` of an evaluation are the variables on a device plus the most
  memory that its allocator records for one step; devices with one memory are
  added up. They are 0 where a step did not run, and a device whose allocator
  keeps no records counts its variables only.

  Attributes:
    cluster: What placements index.
  """

  simulated = False

  def __init__(
      self, source: source_graph.SourceGraph, cluster: cluster_lib.Cluster,
      config: measure_config.MeasureConfig = _DEFAULT, *,
      control_edges: Callable[[op_graph.OpGraph, placement_lib.Placement],
                              np.ndarray] | None = None,
      **changes: Any) -> None:
    """Prepares; the first evaluation starts the processes.

    Args:
      source: The graph, as it was read.
      cluster: Devices of this machine, of the target or of local workers.
      config: How to measure.
      control_edges: Gives the ops of a placement with priorities the order to
        start in: int [C, 2], the second op waits for the first. By default
        `control_edges.chooser` by a simulation of `cluster`.
      **changes: Fields of `config` to set otherwise.

    Raises:
      MeasurementError: data for the graph cannot be made up, or the
        configuration contradicts itself.
    """
    self._config = config = dataclasses.replace(config, **changes)
    self._graph = runnable.convert(source, config.batch_size)
    self.cluster = cluster
    self._control_edges = control_edges or control_edges_lib.chooser(
        simulator.Simulator(cluster))
    self._op_names: tuple[str, ...] | None = None
    self._cores = measure_config.core_plan(config, cluster)
    self._benches: list[bench_lib.Bench] = []
    self._known = measurement_cache.MeasurementCache(config.cache_dir,
                                                     source.name,
                                                     self._context())
    atexit.register(self.close)

  def __enter__(self) -> Measurer:
    return self

  def __exit__(self, *unused_error: object) -> None:
    self.close()

  def close(self) -> None:
    """Ends the processes; a later evaluation starts others."""
    atexit.unregister(self.close)
    for bench in self._benches:
      bench.close()

  def op_seconds(self, graph: op_graph.OpGraph) -> np.ndarray:
    """float64 [N, D], those of the roofline: steps are measured as a whole."""
    return roofline.Roofline().op_seconds(graph, self.cluster)

  def evaluate(self, graph: op_graph.OpGraph,
               placement: placement_lib.Placement) -> evaluator.Evaluation:
    """Runs one placement.

    Args:
      graph: What `source` was read into.
      placement: On devices of `cluster`.

    Raises:
      MeasurementError: another graph or cluster, a target that cannot be
        reached, or a device that is not there.
    """
    if placement.cluster.device_names != self.cluster.device_names:
      raise errors.MeasurementError(
          f'The placement is on cluster "{placement.cluster.name}", but '
          f'"{self.cluster.name}" is measured. Place on that one.')
    return self._evaluate(graph, [placement])[0]

  def price(self, graph: op_graph.OpGraph, devices: np.ndarray,
            priorities: np.ndarray | None = None) -> evaluator.Prices:
    """Runs K placements, int [K, N], on as many processes as there are.

    What is wrong with one of them, `evaluate` says without running it again.

    Args:
      graph: What `source` was read into.
      devices: int [K, N].
      priorities: float [K, N] or [N] as in `Placement`.

    Raises:
      MeasurementError: as `evaluate`.
      ValueError: the arrays do not fit the graph.
    """
    devices = np.asarray(devices)
    shape = len(devices), graph.num_ops
    _check_shape(devices, shape)
    if priorities is not None:
      if np.shape(priorities) != shape[1:]:
        _check_shape(priorities, shape)
      if np.isnan(priorities).any():
        raise ValueError('A priority is not a number; give it one, or None '
                         'for all for first in, first out.')
    return evaluator.Prices.from_evaluations(
        self._evaluate(graph,
                       placement_lib.of_rows(devices, self.cluster,
                                             priorities)),
        self.cluster.pool_bytes)

  def _evaluate(
      self, graph: op_graph.OpGraph,
      placements: Sequence[placement_lib.Placement]
  ) -> list[evaluator.Evaluation]:
    if self._op_names is None:
      self._check_names(graph)
    if graph.names != self._op_names:
      raise errors.MeasurementError(
          f'Graph "{graph.name}" is not the one that this measurer runs. Make '
          'a measurer for each graph.')
    results, keys = {}, []
    unknown: dict[bytes, tuple[placement_lib.Placement,
                               measuring_worker.Request]] = {}
    for k, placement in enumerate(placements):
      if violations := placement.violations(graph):
        results[k] = self._invalid(violations)
        keys.append(b'')
        continue
      request = self._request(graph, placement)
      keys.append(_key(request))
      if keys[k] not in self._known:
        unknown[keys[k]] = placement, request
    self._measure_all(unknown)
    return [
        results[k] if k in results else self._known[key]
        for k, key in enumerate(keys)
    ]

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

  def _measure_all(
      self, unknown: Mapping[bytes, tuple[placement_lib.Placement,
                                          measuring_worker.Request]]
  ) -> None:
    """Fills in what is not known yet."""
    while len(self._benches) < min(len(unknown), len(self._cores)):
      self._benches.append(self._bench(*self._cores[len(self._benches)]))
    if len(unknown) == 1 or len(self._benches) == 1:
      for key, item in unknown.items():
        self._measure(self._benches[0], key, *item)
    elif unknown:
      self._measure_side_by_side(unknown)

  def _measure_side_by_side(
      self, unknown: Mapping[bytes, tuple[placement_lib.Placement,
                                          measuring_worker.Request]]
  ) -> None:
    idle: queue.SimpleQueue[bench_lib.Bench] = queue.SimpleQueue()
    for bench in self._benches:
      idle.put(bench)

    def measure(
        key: bytes, item: tuple[placement_lib.Placement,
                                measuring_worker.Request]) -> None:
      bench = idle.get()
      try:
        self._measure(bench, key, *item)
      finally:
        idle.put(bench)

    try:
      with concurrent.futures.ThreadPoolExecutor(len(self._benches)) as pool:
        try:
          for done in [pool.submit(measure, *pair) for pair in unknown.items()]:
            done.result()
        except BaseException:  # One for all; do not wait for the others.
          pool.shutdown(wait=False, cancel_futures=True)
          for bench in self._benches:
            bench.stop()
          raise
    except BaseException:
      benches, self._benches = self._benches, []
      for bench in benches:
        bench.close()
      raise

  def _measure(self, bench: bench_lib.Bench, key: bytes,
               placement: placement_lib.Placement,
               request: measuring_worker.Request) -> None:
    answer = bench.measure(request)
    # With a longer timeout the step might run.
    hurried = self._config.timeout_s < _DEFAULT.timeout_s
    lasting = not (isinstance(answer, messages.Failure) and
                   (hurried or answer.lost))
    self._known.add(key, self._evaluation(placement, answer), lasting)

  def _bench(self, worker_cores: Sequence[Sequence[int]],
             client_cores: Sequence[int]) -> bench_lib.Bench:
    config = self._config
    assert self._op_names is not None  # Set by the first evaluation.
    return bench_lib.Bench(
        measuring_worker.Setup(self._graph, self._op_names,
                               self.cluster.device_names,
                               gpu_splits(self.cluster), config.target,
                               config.connect_s, config.timeout_s,
                               self._schedule()), worker_cores, client_cores,
        config.inter_op_threads)

  def _schedule(self) -> timing.Schedule:
    config = self._config
    return timing.Schedule(config.warmup, config.steps, config.budget_s,
                           config.tolerance)

  def _context(self) -> bytes:
    """All that a measured time depends on, but the placement."""
    import tensorflow as tf
    graph = self._graph.graph_def.SerializeToString(deterministic=True)
    parts = (tf.__version__, self.cluster.device_names,
             self.cluster.memory_pools.tolist(), self._graph.targets,
             gpu_splits(self.cluster), self._schedule(), self._config.target,
             self._cores[0], self._config.inter_op_threads,
             len(os.sched_getaffinity(0)))
    return graph + repr(parts).encode()

  def _evaluation(
      self, placement: placement_lib.Placement,
      answer: measuring_worker.Timing | messages.Failure
  ) -> evaluator.Evaluation:
    if isinstance(answer, messages.Failure):
      return self._invalid((placement_lib.Violation('run', answer.message),))
    return evaluator.Evaluation(answer.step_time_s,
                                self._peaks(placement, answer.peak_bytes), (),
                                simulated=False, spread_s=answer.spread_s)

  def _peaks(self, placement: placement_lib.Placement,
             step_bytes: tuple[int, ...]) -> tuple[int, ...]:
    """[P], by memory pool."""
    pools = self.cluster.memory_pools
    assert self._op_names is not None  # Set by the first evaluation.
    result = np.zeros(len(self.cluster.pool_bytes), np.int64)
    np.add.at(result, pools, step_bytes)
    device = dict(zip(self._op_names, placement.devices.tolist()))
    for variable in self._graph.variables:
      result[pools[device[variable.owner]]] += variable.size_bytes
    return tuple(result.tolist())

  def _invalid(
      self, violations: tuple[placement_lib.Violation,
                              ...]) -> evaluator.Evaluation:
    return evaluator.Evaluation(float('inf'),
                                (0,) * len(self.cluster.pool_bytes),
                                tuple(violations), simulated=False)


def _check_shape(array: np.ndarray, shape: tuple[int, int]) -> None:
  if np.shape(array) != shape:
    raise ValueError(f'{np.shape(array)} for placements of {shape[1]} ops')


def gpu_splits(cluster: cluster_lib.Cluster) -> tuple[tuple[int, ...], ...]:
  """Memory of the logical GPUs of each physical one; () if none is split."""
  physical: dict[str, list[int]] = {}
  for device in cluster.devices:
    if device.type == 'GPU':
      physical.setdefault(device.compute, []).append(device.memory_bytes)
  if all(len(parts) == 1 for parts in physical.values()):
    return ()
  return tuple(tuple(parts) for parts in physical.values())


def _key(request: measuring_worker.Request) -> bytes:
  return hashlib.sha256(request.devices.tobytes()
                        + repr(request.control_edges).encode()).digest()
