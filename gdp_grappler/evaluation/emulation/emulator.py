"""Prices placements by TensorFlow's own runtime, on emulated GPUs.

The emulator shows TensorFlow's decisions: when and in which order ops are
dispatched, which stream waits for which other stream, which work overlaps, and
what fits into memory. Four parts do not come from TensorFlow:

* The cost model gives the seconds of kernels.
* The devices give the host's time for dispatch and callbacks. Other time of the
  host does not count, because the emulated clock stands still during it.
* Links serve copies as in the simulator: when all channels of its link are
  free, a copy takes latency plus bytes / bandwidth.
* There is no driver, so a driver takes no further time.
"""

from __future__ import annotations

import atexit
import itertools
from typing import Callable, Sequence
import weakref

import numpy as np

from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import arguments
from gdp_grappler.evaluation import evaluator
from gdp_grappler.evaluation.costs import calibrated_costs
from gdp_grappler.evaluation.costs import cost_model as cost_model_lib
from gdp_grappler.evaluation.costs import op_details
from gdp_grappler.evaluation.emulation import emulated_graph
from gdp_grappler.evaluation.emulation import emulation_worker
from gdp_grappler.evaluation.emulation import machine as machine_lib
from gdp_grappler.evaluation.emulation import timeline as timeline_lib
from gdp_grappler.evaluation.ordering import control_edges as control_edges_lib
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.processes import worker_process

# Time limit for all steps of a placement together, in seconds. A placement that
# takes longer counts as hanging.
TIMEOUT_S = 300.
_TRIES = 3  # Runs of a placement whose process is killed.
_START_TIMEOUT_S = 300.  # To import TensorFlow.

_Answer = emulation_worker.Emulated | emulation_worker.NotEmulated


class Emulator(evaluator.Evaluator):
  """Runs steps on emulated GPUs.

  Steps run in a child process, in a session per placement. A placement that
  exceeds TensorFlow's memory gets a violation of kind 'memory'. A placement
  whose step fails, hangs or crashes the process gets a violation of kind 'run'.
  If the process is killed from outside, the placement runs again in a new
  process.

  An object must not be used from several threads at once.

  Attributes:
    cluster: Cluster whose devices placements index.
    cost_model: Seconds and workspace of each op.
  """

  simulated = False

  def __init__(
      self, cluster: cluster_lib.Cluster,
      cost_model: cost_model_lib.CostModel | None = None, *, steps: int = 1,
      timeout_s: float = TIMEOUT_S,
      control_edges: Callable[[op_graph.OpGraph, placement_lib.Placement],
                              np.ndarray] | None = None):
    """Prepares the emulator; the first evaluation starts the process.

    Args:
      cluster: One host with GPUs.
      cost_model: Costs of ops; by default `calibrated_costs.of`.
      steps: Number of timed steps; the step time is their median.
      timeout_s: Seconds after which a placement counts as hanging, for all its
        steps together.
      control_edges: Function that returns control edges for a placement with
        priorities, int [C, 2]; see `Measurer`.

    Raises:
      MeasurementError: the cluster cannot be emulated, or a number is not
        above 0.
    """
    for name, value in (('steps', steps), ('timeout_s', timeout_s)):
      if value <= 0:
        raise errors.MeasurementError(f'{name} is {value}; give more than 0.')
    self.cluster = cluster
    self.cost_model = cost_model or calibrated_costs.of(cluster)
    self._steps, self._timeout_s = steps, timeout_s
    self._machine = machine_lib.Machine(cluster)
    self._control_edges = control_edges or control_edges_lib.chooser(
        simulator_lib.Simulator(cluster, self.cost_model))
    self._graphs: weakref.WeakKeyDictionary[
        op_graph.OpGraph, emulation_worker.Load] = weakref.WeakKeyDictionary()
    self._numbers = itertools.count()
    self._process: worker_process.WorkerProcess | None = None
    self._loaded: set[int] = set()  # Numbers of graphs that the process has.
    self._started = False  # Whether the process has answered once.
    atexit.register(self.close)

  def __enter__(self) -> Emulator:
    return self

  def __exit__(self, *unused_error: object) -> None:
    self.close()

  def close(self) -> None:
    """Ends the process; a later evaluation starts a new one."""
    atexit.unregister(self.close)
    self._end()

  def op_seconds(self, graph: op_graph.OpGraph) -> np.ndarray:
    """float64 [N, D], seconds of ops by the cost model."""
    return self.cost_model.op_seconds(graph, self.cluster)

  def costs(self, graph: op_graph.OpGraph) -> cost_model_lib.CostModel:
    """See `evaluator.Evaluator`; the same for all graphs."""
    del graph
    return self.cost_model

  def evaluate(self, graph: op_graph.OpGraph,
               placement: placement_lib.Placement) -> evaluator.Evaluation:
    """Runs one placement; see `evaluator.Evaluator`.

    Raises:
      ValueError: the placement is on another cluster.
      InfeasiblePlacementError: the cluster cannot hold the graph at all.
      MeasurementError: TensorFlow cannot be started.
    """
    arguments.check_cluster(placement, self.cluster, 'emulator')
    if violations := placement.violations(graph):
      return evaluator.Evaluation.broken(violations, self.cluster,
                                         simulated=False)
    answer = self._run(graph, placement)
    if isinstance(answer, emulation_worker.NotEmulated):
      return evaluator.Evaluation.broken(
          [placement_lib.Violation(answer.kind, answer.message)], self.cluster,
          simulated=False)
    seconds = [line.step_time_s for line in answer.timelines]
    low, median, high = np.percentile(seconds, (25, 50, 75))
    return evaluator.Evaluation(
        float(median) + self.cluster.step_s, self._by_pool(answer.peak_bytes),
        (), simulated=False, spread_s=float(high - low))

  def timeline(self, graph: op_graph.OpGraph,
               placement: placement_lib.Placement) -> timeline_lib.Timeline:
    """The events of the step whose time is the median.

    Raises:
      ValueError: the placement is on another cluster, breaks a rule of the
        graph, or cannot run.
      MeasurementError: TensorFlow cannot be started.
    """
    arguments.check_cluster(placement, self.cluster, 'emulator')
    if violations := placement.violations(graph):
      raise ValueError(f'This placement cannot run: {violations[0].message}.')
    answer = self._run(graph, placement)
    if isinstance(answer, emulation_worker.NotEmulated):
      raise ValueError(f'This placement did not run: {answer.message}.')
    return answer.timelines[(len(answer.timelines) - 1) // 2]

  def _run(self, graph: op_graph.OpGraph,
           placement: placement_lib.Placement) -> _Answer:
    load = self._graphs.get(graph)
    if load is None:
      load = self._graphs[graph] = emulation_worker.Load(
          next(self._numbers),
          emulated_graph.of(graph, self.cost_model, self._machine))
    edges = (np.zeros((0, 2), np.int32) if placement.priorities is None else
             self._control_edges(graph, placement))
    devices = op_details.working_devices(graph, self.cluster, placement.devices)
    request = emulation_worker.Request(load.number, devices, edges, self._steps)
    for tries_left in reversed(range(_TRIES)):
      try:
        return self._ask(load, request)
      except worker_process.Died as error:
        started = self._started
        self._end()
        if error.killed and tries_left:
          continue
        if not started:
          raise errors.MeasurementError(
              f'Emulated GPUs could not start: {error}. Use simulated '
              'steps if this persists.') from error
        return emulation_worker.NotEmulated('run', str(error))
      except BaseException:  # Also Ctrl-C: an answer may still be on its way.
        self._end()
        raise
    raise AssertionError('The last try returns or raises.')

  def _ask(self, load: emulation_worker.Load,
           request: emulation_worker.Request) -> _Answer:
    if self._process is None:
      self._process = worker_process.WorkerProcess(
          f'{emulation_worker.__name__}:main', keras=False)
      self._process.send(self._machine)
    if not self._started:
      self._process.receive(_START_TIMEOUT_S)
      self._started = True
    if load.number not in self._loaded:
      self._process.send(load)
      self._loaded.add(load.number)
    self._process.send(request)
    return self._process.receive(self._timeout_s)

  def _end(self) -> None:
    process, self._process = self._process, None
    self._loaded.clear()
    self._started = False
    if process is not None:
      process.close()

  def _by_pool(self, device_bytes: Sequence[int]) -> tuple[int, ...]:
    """[P], bytes by memory pool; each device has a pool of its own."""
    result = [0] * len(self.cluster.pool_bytes)
    for pool, size in zip(self.cluster.memory_pools, device_bytes):
      result[pool] = size
    return tuple(result)
