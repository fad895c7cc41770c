"""Prices placements with a stopwatch."""

from __future__ import annotations

import atexit
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any, Sequence

import numpy as np

from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator
from gdp_grappler.evaluation import measuring_worker
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import runnable
from gdp_grappler.graph import source_graph

# What would make the worker run another graph than it is given.
_FOREIGN = ('GDP_PLACEMENT', 'GDP_CAPTURE_DIR', 'TF_XLA_FLAGS')
_START_TIMEOUT_S = 300.  # To import TensorFlow and read the graph.


class Measurer:
  """An `evaluator.Evaluator` that runs a graph on this machine's devices.

  Steps run in a process of their own on made-up data (`graph.runnable`), with
  Grappler off and without soft placement, so that what runs is what was
  placed. A placement whose step fails, hangs or takes the process down gets a
  violation of kind 'run'; the process is then started anew. A placement is
  measured once and remembered.

  `peak_bytes` of an evaluation are the variables on a device plus the most
  memory that its allocator records for one step; devices with one memory are
  added up. They are 0 where a step did not run, and a device whose allocator
  keeps no records counts its variables only.
  """

  def __init__(self, source: source_graph.SourceGraph,
               cluster: cluster_lib.Cluster, *, steps: int = 5,
               warmup: int = 2, budget_s: float = 20., timeout_s: float = 300.,
               batch_size: int = 32):
    """Prepares; the first evaluation starts the process.

    Args:
      source: The graph, as it was read.
      cluster: Devices of this machine.
      steps: Steps per round; rounds go on until the median is stable.
      warmup: Steps that do not count.
      budget_s: No further round once this has passed.
      timeout_s: A placement whose steps take longer together hangs.
      batch_size: For inputs whose first dimension is unknown.

    Raises:
      MeasurementError: data for the graph cannot be made up.
    """
    self._graph = runnable.convert(source, batch_size)
    self._cluster = cluster
    self._schedule = dict(warmup=warmup, steps=steps, budget_s=budget_s)
    self._timeout_s = timeout_s
    self._known: dict[bytes, evaluator.Evaluation] = {}
    self._worker: _Worker | None = None
    self._op_names: tuple[str, ...] | None = None
    atexit.register(self.close)

  def __enter__(self) -> Measurer:
    return self

  def __exit__(self, *unused_error) -> None:
    self.close()

  def close(self) -> None:
    """Ends the process; a later evaluation starts another one."""
    atexit.unregister(self.close)
    self._drop_worker()

  def evaluate(self, graph: op_graph.OpGraph,
               placement: placement_lib.Placement) -> evaluator.Evaluation:
    """Runs one placement.

    Args:
      graph: What `source` was read into.
      placement: On devices of `cluster`.

    Raises:
      MeasurementError: another graph or cluster, or the machine lacks a
        device.
    """
    if placement.cluster.device_names != self._cluster.device_names:
      raise errors.MeasurementError(
          f'The placement is on cluster "{placement.cluster.name}", but '
          f'"{self._cluster.name}" is measured. Place on that one.')
    return self._evaluate(graph, placement)

  def evaluate_many(self, graph: op_graph.OpGraph, devices: np.ndarray
                    ) -> Sequence[evaluator.Evaluation]:
    """Runs K placements, int [K, N], one after the other."""
    return [self._evaluate(graph, placement_lib.Placement(row, self._cluster))
            for row in devices]

  def _evaluate(self, graph, placement):
    if self._op_names is None:
      self._check_names(graph)
    if graph.names != self._op_names:
      raise errors.MeasurementError(
          f'Graph "{graph.name}" is not the one that this measurer runs. Make '
          'a measurer for each graph.')
    violations = placement.violations(graph)
    if violations:
      return self._invalid(violations)
    key = placement.devices.tobytes()
    if key not in self._known:
      self._known[key] = self._measure(placement)
    return self._known[key]

  def _check_names(self, graph):
    known = set(graph.names)
    lost = [owner for owner in self._graph.owners
            if owner and owner not in known]
    if lost:
      raise errors.MeasurementError(
          f'Graph "{graph.name}" lacks op "{lost[0]}" of the graph to '
          'measure. Give the graph that was read from the same source.')
    self._op_names = graph.names

  def _measure(self, placement) -> evaluator.Evaluation:
    answer = self._ask(placement.devices)
    if isinstance(answer, measuring_worker.Failure):
      return self._invalid((placement_lib.Violation('run', answer.message),))
    return evaluator.Evaluation(
        answer.step_time_s, self._peaks(placement, answer.peak_bytes), (),
        simulated=False)

  def _ask(self, devices) -> Any:
    """The worker's answer, or a `Failure` if it dies over it."""
    try:
      if self._worker is None or not self._worker.alive:
        self._drop_worker()
        self._worker = _Worker(self._setup())
        self._worker.start()
      return self._worker.ask(devices, self._timeout_s)
    except _WorkerDied as error:
      self._drop_worker()
      return measuring_worker.Failure(str(error))
    except BaseException:  # Ctrl-C too: question and answer are out of step.
      self._drop_worker()
      raise

  def _setup(self) -> measuring_worker.Setup:
    return measuring_worker.Setup(
        self._graph, self._op_names, self._cluster.device_names,
        gpu_splits(self._cluster), **self._schedule)

  def _drop_worker(self):
    worker, self._worker = self._worker, None
    if worker is not None:
      worker.close()

  def _peaks(self, placement, step_bytes) -> tuple[int, ...]:
    """[P], by memory pool."""
    pools = self._cluster.memory_pools
    result = np.zeros(len(self._cluster.pool_bytes), np.int64)
    np.add.at(result, pools, step_bytes)
    device = dict(zip(self._op_names, placement.devices.tolist()))
    for variable in self._graph.variables:
      result[pools[device[variable.owner]]] += variable.size_bytes
    return tuple(result.tolist())

  def _invalid(self, violations) -> evaluator.Evaluation:
    return evaluator.Evaluation(
        float('inf'), (0,) * len(self._cluster.pool_bytes), tuple(violations),
        simulated=False)


def gpu_splits(cluster: cluster_lib.Cluster) -> tuple[tuple[int, ...], ...]:
  """Memory of the logical GPUs of each physical one; () if none is split."""
  physical: dict[str, list[int]] = {}
  for device in cluster.devices:
    if device.type == 'GPU':
      physical.setdefault(device.compute, []).append(device.memory_bytes)
  if all(len(parts) == 1 for parts in physical.values()):
    return ()
  return tuple(tuple(parts) for parts in physical.values())


class _WorkerDied(Exception):
  """The worker crashed or hung; the message says how."""


class _Worker:
  """One `measuring_worker` process."""

  def __init__(self, setup: measuring_worker.Setup):
    self._setup = setup
    self._stderr = tempfile.TemporaryFile()
    # A session of its own: Ctrl-C is for the parent, which then ends it.
    self._process = subprocess.Popen(
        [sys.executable, '-m', 'gdp_grappler.evaluation.measuring_worker'],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr,
        env=_environment(), start_new_session=True)

  @property
  def alive(self) -> bool:
    return self._process.poll() is None

  def start(self) -> None:
    """Hands over the graph.

    Raises:
      MeasurementError: it cannot be run on this machine.
    """
    try:
      answer = self.ask(self._setup, _START_TIMEOUT_S)
    except _WorkerDied as error:
      raise errors.MeasurementError(
          f'Measuring could not start: {error}. Use --reward=simulated if it '
          'stays so.') from error
    if answer is not None:
      raise errors.MeasurementError(answer.message)

  def ask(self, message: Any, timeout_s: float) -> Any:
    """Sends a message and waits for the answer.

    Raises:
      _WorkerDied: there is none.
    """
    end = time.monotonic() + timeout_s
    try:
      measuring_worker.send(self._process.stdin, message)
      return measuring_worker.receive(lambda size: self._read(size, end))
    except (EOFError, BrokenPipeError) as error:
      raise _WorkerDied(self._ending()) from error
    except TimeoutError as error:
      raise _WorkerDied(f'no answer within {timeout_s:g} s') from error

  def close(self) -> None:
    """Ends the process at once."""
    if self._process.poll() is None:
      self._process.kill()
    self._process.wait()
    for stream in (self._process.stdin, self._process.stdout, self._stderr):
      try:
        stream.close()
      except BrokenPipeError:  # An unsent rest for a reader that is gone.
        continue

  def _read(self, size, end) -> bytes:
    """`size` bytes; fewer if the process is gone."""
    data = bytearray()
    descriptor = self._process.stdout.fileno()
    with selectors.DefaultSelector() as selector:
      selector.register(descriptor, selectors.EVENT_READ)
      while len(data) < size:
        if not selector.select(max(0., end - time.monotonic())):
          raise TimeoutError
        part = os.read(descriptor, size - len(data))
        if not part:
          break
        data += part
    return bytes(data)

  def _ending(self) -> str:
    """How the process ended and what it said last."""
    code = self._process.wait()
    if code == -signal.SIGKILL:
      return 'the process was killed, most likely for want of memory'
    how = (f'signal {signal.Signals(-code).name}' if code < 0
           else f'exit code {code}')
    self._stderr.seek(0)
    lines = self._stderr.read().decode(errors='replace').strip().splitlines()
    return f'the process ended with {how}' + (
        f': {lines[-1][:200]}' if lines else '')


def _environment() -> dict[str, str]:
  """Without the plugin and XLA, with the caller's import path."""
  result = {k: v for k, v in os.environ.items() if k not in _FOREIGN}
  result.update(GDP_DISABLE='1', TF_CPP_MIN_LOG_LEVEL='3',
                PYTHONPATH=os.pathsep.join(p for p in sys.path if p))
  return result
