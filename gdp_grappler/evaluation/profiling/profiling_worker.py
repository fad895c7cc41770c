"""The process behind `profiler`: traces steps of one graph on one device."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import graphlib
import os
import time
import types
from typing import Any, Callable, Iterator, Mapping, Sequence, TYPE_CHECKING

import numpy as np

from gdp_grappler import deadlines
from gdp_grappler.evaluation.calibrating import traces
from gdp_grappler.evaluation.measuring import session_config
from gdp_grappler.graph import name_parts
from gdp_grappler.graph import op_kinds
from gdp_grappler.processes import messages

if TYPE_CHECKING:
  from gdp_grappler.evaluation.measuring import runnable as runnable_lib

_CHAIN = 500  # Ops of the chain that gives the least seconds of a visit.
_WARMUP_S = 2.  # Seconds after which no further warm-up step begins.
_WARM_S = 0.1  # Seconds of untraced steps before each traced step ...
_WARM_STEPS = 20  # ... but from one to this number of steps.
# Least share of processor time in the wall time of a step without interruption.
_QUIET = .95
TRACED, ONE_BY_ONE = 'traced', 'timed one by one'
_LEAST_TRACED = 3  # Least number of traced steps, even without time left.
_QUIET_STEPS = 5  # Least number of steps without interruption for a median.
# Seconds, executions and temporary bytes in one step, by index of the op.
_Traced = dict[int, tuple[float, int, int]]


@dataclasses.dataclass(frozen=True)
class Setup:
  """A graph with its placement, and the settings of the profile.

  Attributes:
    graph: A `runnable.Runnable`.
    op_names: [N], names of the profiled graph's ops.
    devices: [N], full device name of each op.
    device: Full name of the device whose ops are timed.
    target: Address of a TensorFlow server; '' for this process.
    cores: CPU cores to which the process is pinned; () for all.
    steps: Number of traced steps.
    warmup: Number of steps before the first timed step; fewer if they take
      long.
    pool: Threads that run ops in parallel in the untraced steps.
    budget_s: Time limit in seconds, with loading and warm-up. A few steps are
      traced even if they exceed it. None means no limit.
  """

  graph: runnable_lib.Runnable
  op_names: tuple[str, ...]
  devices: tuple[str, ...]
  device: str
  target: str
  cores: tuple[int, ...]
  steps: int
  warmup: int
  pool: int
  budget_s: float | None = None

  @property
  def on_gpu(self) -> bool:
    """Whether the device is a GPU, which runs ops on a stream."""
    return ':GPU:' in self.device


@dataclasses.dataclass(frozen=True)
class Recording:
  """The measurements of one profile.

  Attributes:
    step_s: Median seconds of the untraced step.
    empty_step_s: Median seconds of a step with a single op that does nothing.
    disturbed: Share of the time of untraced steps in which other programs ran;
      0 if this is unknown.
    chain_visit_s: Seconds per op of a long chain of ops that do nothing.
    seconds: [N], seconds of all executions of an op in a step, median over the
      traced steps. On a GPU these are the seconds of its kernels, without the
      gaps between kernels.
    executions: [N], executions of an op in a step, median over the traced
      steps.
    workspace_bytes: [N], largest temporary memory of an execution.
    steps: Number of traced steps.
    how: 'traced', or 'timed one by one' if the trace has no kernels.
    untimed: Indices of ops whose seconds are unknown; `seconds` has 0 for them.
    complete: Whether each op that can be timed was timed within the budget.
  """

  step_s: float
  empty_step_s: float
  disturbed: float
  chain_visit_s: float
  seconds: np.ndarray
  executions: np.ndarray
  workspace_bytes: np.ndarray
  steps: int
  how: str = TRACED
  untimed: tuple[int, ...] = ()
  complete: bool = True


def record(setup: Setup) -> Recording | messages.Failure:
  """Runs the steps; called in a child process, which it pins to the cores."""
  if setup.cores:
    # TensorFlow's threads inherit the affinity, so it comes before the import.
    os.sched_setaffinity(0, setup.cores)
  import tensorflow as tf
  try:
    return _record(tf, setup)
  except (tf.errors.OpError, ValueError) as error:
    return messages.Failure(messages.cause(error))


@contextlib.contextmanager
def session(tf: types.ModuleType, setup: Setup) -> Iterator[Callable[[], Any]]:
  """A function that runs one step of the placed graph."""
  placed = setup.graph.placed(dict(zip(setup.op_names, setup.devices)))
  with _session(tf, setup, _imported(tf, placed), setup.pool) as running:
    running.run(setup.graph.initializer)
    yield running.make_callable(
        [running.graph.get_operation_by_name(t) for t in setup.graph.targets])


def _record(tf: types.ModuleType, setup: Setup) -> Recording:
  deadline = deadlines.within(setup.budget_s)
  placed = setup.graph.placed(dict(zip(setup.op_names, setup.devices)))
  graph = _imported(tf, placed)
  with contextlib.ExitStack() as stack:
    wide = stack.enter_context(_session(tf, setup, graph, setup.pool))
    wide.run(setup.graph.initializer)
    alone = wide
    if setup.target:
      # The server has its own number of threads. So edges keep ops apart.
      alone = stack.enter_context(
          _session(tf, setup, _imported(tf, _one_by_one(placed, setup.graph)),
                   1))
    elif setup.pool > 1:
      alone = stack.enter_context(_session(tf, setup, graph, 1))
    if alone is not wide:
      alone.run(setup.graph.initializer)
    steps, step_s, disturbed = _trace(alone, wide, setup, deadline)
    seconds, executions, workspace = _medians(steps, len(setup.op_names))
    how = TRACED
    untimed: tuple[int, ...] = ()
    if setup.on_gpu and not seconds.any():
      how = ONE_BY_ONE
      seconds, untimed = _one_by_one_s(alone, setup, executions, deadline)
    complete = not (untimed and deadline.passed)
  empty_step_s, chain_visit_s = _overheads(tf, setup)
  return Recording(step_s, empty_step_s, disturbed, chain_visit_s, seconds,
                   executions, workspace, len(steps), how, untimed, complete)


def _one_by_one_s(
    session: Any, setup: Setup, executions: np.ndarray,
    deadline: deadlines.Deadline) -> tuple[np.ndarray, tuple[int, ...]]:
  """[N] seconds of ops that are not in the trace, and indices of untimed ops.

  Ops that launch no kernel take 0 s. Ops are untimed if there was no time left,
  if no synthetic inputs exist, if they failed, or if noise hides their seconds.

  Raises:
    ValueError: the device is another process's.
  """
  if setup.target:
    raise ValueError(
        f'the trace of {setup.target} has no kernels (CUPTI is missing, or not '
        'permitted), and only GPUs of this machine are timed without a trace. '
        'Profile on the machine of the GPU')
  from gdp_grappler.evaluation.profiling import single_ops
  there = {
      name for name, device in zip(setup.op_names, setup.devices)
      if device == setup.device
  }
  nodes = {
      op.name for op in session.graph.get_operations()
      if op.device == setup.device
  }
  names = [n for n in setup.op_names if n in there & nodes]
  found = single_ops.seconds(session, names, setup.device, deadline)
  once = np.array([found.get(name, 0.) for name in setup.op_names])
  types = {op.name: op.type for op in session.graph.get_operations()}
  launching = {n for n in names if single_ops.launches_kernels(types[n])}
  untimed = tuple(i for i, name in enumerate(setup.op_names)
                  if name in launching and name not in found)
  return once * executions, untimed


def _imported(tf: types.ModuleType, graph_def: Any) -> Any:
  graph = tf.Graph()
  with graph.as_default():
    tf.graph_util.import_graph_def(graph_def, name='')
  return graph


def _one_by_one(graph_def: Any, runnable: runnable_lib.Runnable) -> Any:
  """Adds control edges that leave only one order of a step's ops.

  A graph with loops or conditions stays as it is: an edge from a branch that is
  not taken would make the rest of the graph dead, too.
  """
  nodes = {node.name: node for node in graph_def.node}
  if any(node.op in op_kinds.CONTROL_FLOW for node in nodes.values()):
    return graph_def
  inputs = {
      name: [name_parts.node_of(i) for i in node.input]
      for name, node in nodes.items()
  }
  before: graphlib.TopologicalSorter[str] = graphlib.TopologicalSorter()
  needed, waiting = set(), list(runnable.targets)
  while waiting:
    name = waiting.pop()
    if name not in needed:
      needed.add(name)
      waiting += inputs[name]
      before.add(name, *inputs[name])
  order = list(before.static_order())
  for last, name in zip(order, order[1:]):
    if last not in inputs[name]:
      nodes[name].input.append(f'^{last}')
  return graph_def


def _session(tf: types.ModuleType, setup: Setup, graph: Any, pool: int) -> Any:
  """A session that runs the graph unchanged.

  In this process, an op gets one thread per core, and `pool` ops run in
  parallel.
  """
  config = session_config.as_it_is(session_config.num_cpus(setup.devices))
  if not setup.target:
    config.intra_op_parallelism_threads = len(setup.cores)
    config.session_inter_op_thread_pool.add(num_threads=pool)
  return tf.compat.v1.Session(setup.target, graph=graph, config=config)


def _trace(alone: Any, wide: Any, setup: Setup,
           deadline: deadlines.Deadline) -> tuple[list[_Traced], float, float]:
  """Traced steps of ops one by one, the median untraced step, disturbance.

  Reading a trace evicts the graph's data from the caches. A step of a training
  finds the data in the caches. So some untraced steps run before every traced
  step.
  """
  from tensorflow.core.protobuf import config_pb2
  options = config_pb2.RunOptions(trace_level=config_pb2.RunOptions.FULL_TRACE)

  def step(session: Any, **how: Any) -> Callable[..., Any]:
    return session.make_callable(
        [session.graph.get_operation_by_name(t) for t in setup.graph.targets],
        **how)

  plain, warm = step(wide), step(alone)
  traced = step(alone, accept_options=True)
  begin = time.perf_counter()
  for i in range(setup.warmup):
    plain()
    if wide is not alone:
      warm()
    if i and time.perf_counter() - begin > _WARMUP_S:
      break
  repeats = int(np.clip(_WARM_S / max(_clocked(plain)[0], 1e-9), 1,
                        _WARM_STEPS))
  owners = dict(
      zip((node.name for node in setup.graph.graph_def.node),
          setup.graph.owners))
  index = {name: i for i, name in enumerate(setup.op_names)}
  steps, seconds = [], []
  for number in range(setup.steps):
    if number >= _LEAST_TRACED and deadline.passed:
      break
    plain()
    seconds += [_clocked(plain) for _ in range(repeats)]
    if wide is not alone:
      for _ in range(repeats):
        warm()
    metadata = config_pb2.RunMetadata()
    traced(options=options, run_metadata=metadata)
    steps.append(_summed(metadata.step_stats, setup.device, owners, index))
  return (steps, _median_s(seconds, setup), _disturbed(seconds, setup))


def _clocked(step: Callable[[], Any]) -> tuple[float, float]:
  """Wall time of a step, and its processor time on all cores, in seconds."""
  start, cpu_start = time.perf_counter(), time.process_time()
  step()
  cpu_end, end = time.process_time(), time.perf_counter()
  return end - start, cpu_end - cpu_start


def _median_s(seconds: Sequence[tuple[float, float]], setup: Setup) -> float:
  """Median seconds of pairs from `_clocked`.

  On one core, other programs may interrupt the process. Then only steps without
  interruption count. If there are too few of these, the processor time of the
  process is the best estimate.
  """
  wall, cpu = np.array(seconds).T
  if not _tells_others(setup):
    return float(np.median(wall))
  quiet = cpu >= _QUIET * wall
  return float(np.median(wall[quiet] if quiet.sum() >= _QUIET_STEPS else cpu))


def _tells_others(setup: Setup) -> bool:
  """Whether other programs run whenever this process does not."""
  return len(setup.cores) == 1 and not setup.target and not setup.on_gpu


def _disturbed(seconds: Sequence[tuple[float, float]], setup: Setup) -> float:
  wall, cpu = np.sum(seconds, 0)
  if not _tells_others(setup):
    return 0.
  return float(np.clip(1 - cpu / wall, 0, 1))


def _summed(step_stats: Any, device: str, owners: Mapping[str, str],
            index: Mapping[str, int]) -> _Traced:
  """Seconds, executions and temporary bytes of each op in one traced step."""
  host: dict[int, list[tuple[Any, bool]]] = collections.defaultdict(list)
  kernels: collections.Counter[int] = collections.Counter()
  for stats in step_stats.dev_stats:
    for node in stats.node_stats:
      name = node.node_name.split(':')[0]
      op = index.get(owners.get(name, ''))
      if op is None:
        continue
      if stats.device == device:
        host[op].append((node, index.get(name) == op))
      elif stats.device.endswith(traces.all_streams(device)):
        kernels[op] += traces.kernel_nanos(node)
  result = {}
  for op, nodes in host.items():
    nanos = sum(
        max(0, node.op_end_rel_nanos - node.op_start_rel_nanos)
        for node, _ in nodes)
    # On a GPU the executor's record ends with the launch.
    nanos = kernels[op] if ':GPU:' in device else nanos
    result[op] = (nanos * 1e-9, sum(own for _, own in nodes),
                  max(_temporary_bytes(node) for node, _ in nodes))
  return result


def _temporary_bytes(node: Any) -> int:
  """Largest memory that an op held while it ran, without its outputs."""
  outputs = sum(o.tensor_description.allocation_description.requested_bytes
                for o in node.output)
  highest = sum(used.peak_bytes for used in node.memory)
  return max(node.memory_stats.temp_memory_size, highest - outputs, 0)


def _medians(steps: Sequence[_Traced],
             n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """[N], medians of seconds and executions, and maxima of temporary bytes."""
  values = np.zeros((len(steps), n, 3))
  for row, step in zip(values, steps):
    for op, record_ in step.items():
      row[op] = record_
  seconds, executions, temporary = np.moveaxis(values, 2, 0)
  return (np.median(seconds, 0), np.round(np.median(executions, 0)),
          temporary.max(0).astype(np.int64))


def _overheads(tf: types.ModuleType, setup: Setup) -> tuple[float, float]:
  """Seconds of a step of one op that does nothing, and of each further op."""
  graph = tf.Graph()
  with graph.as_default(), graph.device(setup.device):
    first = last = tf.raw_ops.NoOp(name='empty')
    for _ in range(_CHAIN):
      with tf.control_dependencies([last]):
        last = tf.raw_ops.NoOp(name='link')
  with _session(tf, setup, graph, setup.pool) as session:
    empty, chain = _median_steps_s(
        [session.make_callable([op]) for op in (first, last)], setup)
  return empty, max(0., chain - empty) / _CHAIN


def _median_steps_s(steps: list[Callable[[], Any]],
                    setup: Setup) -> list[float]:
  """Median seconds of each step.

  The steps run in turns, so that a disturbance affects all of them.
  """
  for step in steps * 20:
    step()
  turns = [[_clocked(step) for step in steps] for _ in range(100)]
  return [_median_s(seconds, setup) for seconds in zip(*turns)]
