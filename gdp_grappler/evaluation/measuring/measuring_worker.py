"""The process behind `measurer`: runs one graph under many placements.

The process communicates by its standard input and output; see `messages`. The
first message is a `Setup`. The answer is None, or a `Failure` if a device is
missing. Every further message is a `Request` or None. The answer to a `Request`
is a `Timing` or a `Failure`. None asks for another check of the devices, with
the same answers as a `Setup`. The process ends when its input ends, even in the
middle of a step, so it cannot outlive its parent.
"""

from __future__ import annotations

import collections
import dataclasses
import os
import queue
import sys
import threading
import traceback
from typing import Any, Sequence, TYPE_CHECKING

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.evaluation.measuring import session_config
from gdp_grappler.evaluation.measuring import timing
from gdp_grappler.processes import messages

if TYPE_CHECKING:
  from gdp_grappler.evaluation.measuring import runnable as runnable_lib


@dataclasses.dataclass(frozen=True)
class Setup:
  """The data that are the same for all placements.

  Attributes:
    graph: A `runnable.Runnable`.
    op_names: [N] ops of the placed graph.
    device_names: [D] full device names.
    gpu_splits_bytes: For each physical GPU, the bytes of the logical GPUs cut
      from it; () leaves GPUs whole.
    target: 'grpc://host:port' of a TensorFlow cluster; '' for the devices of
      this process.
    connect_s: Seconds after which a target without an answer is unreachable.
    timeout_s: Seconds after which a call of a target counts as hanging.
    schedule: Number of steps to run.
  """

  graph: runnable_lib.Runnable
  op_names: tuple[str, ...]
  device_names: tuple[str, ...]
  gpu_splits_bytes: tuple[tuple[int, ...], ...]
  target: str
  connect_s: float
  timeout_s: float
  schedule: timing.Schedule


@dataclasses.dataclass(frozen=True, eq=False)
class Request:
  """One placement.

  Attributes:
    devices: int [N], indices into `Setup.device_names`.
    control_edges: Pairs of op names; the second waits for the first.
  """

  devices: np.ndarray
  control_edges: tuple[tuple[str, str], ...] = ()


@dataclasses.dataclass(frozen=True)
class Timing:
  """The measured step of a placement.

  Attributes:
    step_time_s: Median of the steps, in seconds.
    spread_s: Interquartile range of the steps, in seconds.
    num_steps: Number of these steps.
    peak_bytes: [D], most bytes that tensors of one step held at a time.
  """

  step_time_s: float
  spread_s: float
  num_steps: int
  peak_bytes: tuple[int, ...]


def main(cores: list[int]) -> None:
  """Serves until the input ends.

  Args:
    cores: CPU cores to run on; [] means all.
  """
  if cores:
    os.sched_setaffinity(0, cores)
  answers = messages.begin_child()
  requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
  threading.Thread(target=_listen, args=(requests,), daemon=True).start()
  import tensorflow  # noqa: F401
  setup = requests.get()
  messages.send(answers, _complaint(setup))
  while True:
    request = requests.get()
    messages.send(answers,
                  _complaint(setup) if request is None else run(setup, request))


def run(setup: Setup, request: Request) -> Timing | messages.Failure:
  """Times one placement."""
  import tensorflow as tf
  if setup.target and (complaint := _complaint(setup)):
    return complaint  # This check has the shorter timeout.
  names = dict(
      zip(setup.op_names,
          (setup.device_names[device] for device in request.devices)))
  graph = tf.Graph()
  try:
    with graph.as_default():
      tf.graph_util.import_graph_def(
          setup.graph.placed(names, request.control_edges), name='')
    with tf.compat.v1.Session(setup.target, graph=graph,
                              config=_config(setup)) as session:
      session.run(graph.get_operation_by_name(setup.graph.initializer))
      targets = [graph.get_operation_by_name(t) for t in setup.graph.targets]
      clocked = timing.clock(session.make_callable(targets), setup.schedule)
      return Timing(clocked.median_s, clocked.spread_s, clocked.num_steps,
                    _peaks(session, targets, setup.device_names))
  except tf.errors.DeadlineExceededError:
    return messages.Failure(f'no answer within {setup.timeout_s:g} s',
                            lost=True, hung=True)
  except tf.errors.OpError as error:
    lost = (tf.errors.UnavailableError, tf.errors.AbortedError,
            tf.errors.CancelledError)
    return messages.Failure(messages.cause(error), lost=isinstance(error, lost))
  except ValueError as error:
    return messages.Failure(messages.cause(error))


def _peaks(session: Any, targets: Sequence[Any],
           device_names: tuple[str, ...]) -> tuple[int, ...]:
  """[D], most bytes allocated at a time, by the records of the allocators."""
  from tensorflow.core.protobuf import config_pb2
  options = config_pb2.RunOptions(trace_level=config_pb2.RunOptions.FULL_TRACE)
  metadata = config_pb2.RunMetadata()
  session.run(targets, options=options, run_metadata=metadata)
  hosts = {cluster_lib.task(name): name for name in reversed(device_names)}
  changes: dict[str | None, list[tuple[int,
                                       int]]] = (collections.defaultdict(list))
  for device in metadata.step_stats.dev_stats:
    for node in device.node_stats:
      for used in node.memory:
        # Pinned host memory belongs to the host, also if a GPU allocated it.
        owner = hosts.get(cluster_lib.task(device.device)) if (
            'host' in used.allocator_name) else device.device
        changes[owner] += [
            (r.alloc_micros, r.alloc_bytes) for r in used.allocation_records
        ]
  return tuple(_highest(changes[name]) for name in device_names)


def _highest(changes: list[tuple[int, int]]) -> int:
  """Highest partial sum of (time, bytes) pairs in the order of time."""
  if not changes:
    return 0
  sizes = np.array([size for _, size in sorted(changes)], np.int64)
  return max(0, int(sizes.cumsum().max()))


def _config(setup: Setup, timeout_s: float | None = None) -> Any:
  """Configuration of a session, with the GPUs cut into logical ones."""
  config = session_config.as_it_is(
      None if setup.target else session_config.num_cpus(setup.device_names))
  if setup.target:
    # Other sessions do not see the variables, which end with the session.
    config.isolate_session_state = True
    config.operation_timeout_in_ms = int(1000 * (timeout_s or setup.timeout_s))
  for splits in setup.gpu_splits_bytes:
    config.gpu_options.experimental.virtual_devices.add(
        memory_limit_mb=[size >> 20 for size in splits])
  return config


def _complaint(setup: Setup) -> messages.Failure | None:
  """A failure if the target does not answer or lacks a device, else None."""
  import tensorflow as tf
  try:
    with tf.compat.v1.Session(setup.target, graph=tf.Graph(),
                              config=_config(setup,
                                             setup.connect_s)) as session:
      have = [d.name for d in session.list_devices()]
  except tf.errors.OpError as error:
    cause = messages.cause(error)
    return messages.Failure(
        f'{setup.target} cannot be reached within {setup.connect_s:g} s: '
        f'{cause}. Start all tasks of that cluster, or name one that runs.'
        if setup.target else
        f'The devices of this machine cannot be used: {cause}.', fatal=True,
        lost=True)
  missing = [d for d in setup.device_names if d not in have]
  if not missing:
    return None
  have = [d for d in have if 'XLA' not in d]
  return messages.Failure(
      f'{setup.target or "This machine"} has no device {missing[0]}; it has '
      f'{", ".join(have)}. Place on these'
      f'{"" if setup.target else " (cluster local)"}, or use '
      'simulated steps.', fatal=True)


def _listen(requests: queue.SimpleQueue[Any]) -> None:
  """Puts messages into the queue; ends the process when its input ends."""
  try:
    while True:
      requests.put(messages.receive(sys.stdin.buffer.read))
  except EOFError:
    os._exit(0)  # The main thread may be in the middle of a long step.
  except BaseException:
    traceback.print_exc()
    os._exit(1)
