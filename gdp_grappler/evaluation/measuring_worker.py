"""The process behind `measurer`: runs one graph under many placements.

Speaks over its standard input and output: pickled messages, each after its
length in 8 bytes. The first one is a `Setup`; every further one an array of
device numbers, to be answered with a `Timing` or a `Failure`. It ends when its
input does, even in the middle of a step, so it cannot outlive its parent.
"""

from __future__ import annotations

import collections
import dataclasses
import os
import pickle
import queue
import statistics
import struct
import sys
import threading
import time
import traceback
from typing import Any, BinaryIO, Callable

import numpy as np

_LENGTH = struct.Struct('>Q')
_STABLE = 0.02  # Medians that differ by less than this share are the same.
_LEAST_S = 0.1  # Of clocked steps; a shorter time says little.


@dataclasses.dataclass(frozen=True)
class Setup:
  """What stays the same for all placements.

  Attributes:
    graph: A `runnable.Runnable`.
    op_names: [N] ops of the placed graph.
    device_names: [D] full device names.
    gpu_splits_bytes: For each physical GPU the memory of the logical ones cut
      from it; empty to leave GPUs as they are.
    warmup: Steps before the clock starts.
    steps: Steps of a round; rounds go on until their median is stable.
    budget_s: No further round once this has passed.
  """

  graph: Any
  op_names: tuple[str, ...]
  device_names: tuple[str, ...]
  gpu_splits_bytes: tuple[tuple[int, ...], ...]
  warmup: int
  steps: int
  budget_s: float


@dataclasses.dataclass(frozen=True)
class Timing:
  """A step that ran.

  Attributes:
    step_time_s: The median.
    num_steps: How many steps it is the median of.
    peak_bytes: [D] most memory that tensors of one step held at a time.
  """

  step_time_s: float
  num_steps: int
  peak_bytes: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Failure:
  """Why something did not run; `fatal` if no placement will."""

  message: str
  fatal: bool = False


def send(stream: BinaryIO, message: Any) -> None:
  """Writes one message."""
  data = pickle.dumps(message)
  stream.write(_LENGTH.pack(len(data)) + data)
  stream.flush()


def receive(read: Callable[[int], bytes]) -> Any:
  """Reads one message.

  Args:
    read: Returns as many bytes as it is asked for, fewer at the end.

  Raises:
    EOFError: the other side is gone.
  """
  header = read(_LENGTH.size)
  if len(header) < _LENGTH.size:
    raise EOFError
  size, = _LENGTH.unpack(header)
  data = read(size)
  if len(data) < size:
    raise EOFError
  return pickle.loads(data)


def main() -> None:
  """Serves until the input ends."""
  answers = os.fdopen(os.dup(1), 'wb')
  os.dup2(2, 1)  # Whatever prints must not garble the answers.
  _volunteer_for_oom()
  requests: queue.SimpleQueue = queue.SimpleQueue()
  threading.Thread(target=_listen, args=(requests,), daemon=True).start()
  setup = requests.get()
  missing = _missing_devices(setup)
  send(answers, Failure(missing, fatal=True) if missing else None)
  while True:
    send(answers, run(setup, requests.get()))


def run(setup: Setup, devices: np.ndarray) -> Timing | Failure:
  """Times one placement.

  Args:
    setup: The graph.
    devices: int [N], numbers of `setup.device_names`.
  """
  import tensorflow as tf  # pylint: disable=g-import-not-at-top
  names = dict(zip(setup.op_names, (
      setup.device_names[device] for device in devices)))
  graph = tf.Graph()
  try:
    with graph.as_default():
      tf.graph_util.import_graph_def(setup.graph.placed(names), name='')
    with tf.compat.v1.Session(graph=graph, config=_config(setup)) as session:
      session.run(graph.get_operation_by_name(setup.graph.initializer))
      targets = [graph.get_operation_by_name(t) for t in setup.graph.targets]
      step_time_s, num_steps = _time(session.make_callable(targets), setup)
      return Timing(step_time_s, num_steps,
                    _peaks(session, targets, setup.device_names))
  except (tf.errors.OpError, ValueError) as error:
    return Failure(' '.join(str(error).split())[:300])


def _time(step: Callable[[], Any], setup: Setup) -> tuple[float, int]:
  """Median seconds of a step, and of how many."""
  for _ in range(setup.warmup):
    step()
  seconds: list[float] = []
  last, begin = float('inf'), time.perf_counter()
  while True:
    for _ in range(setup.steps):
      start = time.perf_counter()
      step()
      seconds.append(time.perf_counter() - start)
    median, spent = statistics.median(seconds), time.perf_counter() - begin
    stable = abs(median - last) <= _STABLE * median and spent >= _LEAST_S
    if stable or spent >= setup.budget_s:
      return median, len(seconds)
    last = median


def _peaks(session, targets, device_names) -> tuple[int, ...]:
  """[D] most bytes allocated at a time, by the allocators' own records."""
  from tensorflow.core.protobuf import config_pb2  # pylint: disable=g-import-not-at-top
  options = config_pb2.RunOptions(
      trace_level=config_pb2.RunOptions.FULL_TRACE)
  metadata = config_pb2.RunMetadata()
  session.run(targets, options=options, run_metadata=metadata)
  changes = collections.defaultdict(list)
  for device in metadata.step_stats.dev_stats:
    for node in device.node_stats:
      for used in node.memory:
        # Pinned host memory is the host's, whatever device asked for it.
        owner = device_names[0] if 'host' in used.allocator_name else (
            device.device)
        changes[owner] += [(r.alloc_micros, r.alloc_bytes)
                           for r in used.allocation_records]
  return tuple(_highest(changes[name]) for name in device_names)


def _highest(changes: list[tuple[int, int]]) -> int:
  """Highest sum on the way, in the order of time."""
  if not changes:
    return 0
  sizes = np.array([size for _, size in sorted(changes)], np.int64)
  return max(0, int(sizes.cumsum().max()))


def _config(setup: Setup):
  """Runs the graph as it is: no rewriting, no moving of ops."""
  import tensorflow as tf  # pylint: disable=g-import-not-at-top
  config = tf.compat.v1.ConfigProto(allow_soft_placement=False)
  config.device_count['CPU'] = sum('CPU' in d for d in setup.device_names)
  config.gpu_options.allow_growth = True
  for splits in setup.gpu_splits_bytes:
    config.gpu_options.experimental.virtual_devices.add(
        memory_limit_mb=[size >> 20 for size in splits])
  options = config.graph_options
  options.rewrite_options.disable_meta_optimizer = True
  options.optimizer_options.opt_level = -1
  options.optimizer_options.global_jit_level = -1
  return config


def _missing_devices(setup: Setup) -> str:
  """A complaint, or '' if this process has all devices."""
  import tensorflow as tf  # pylint: disable=g-import-not-at-top
  with tf.compat.v1.Session(graph=tf.Graph(), config=_config(setup)) as s:
    have = [d.name for d in s.list_devices()]
  missing = [d for d in setup.device_names if d not in have]
  if not missing:
    return ''
  return (f'This machine has no device {missing[0]}; it has '
          f'{", ".join(have)}. Measure on --cluster=local, or use '
          '--reward=simulated.')


def _listen(requests) -> None:
  """Passes messages on; ends the process when there will be no more."""
  try:
    while True:
      requests.put(receive(sys.stdin.buffer.read))
  except EOFError:
    os._exit(0)  # The main thread may be in the middle of a long step.
  except BaseException:  # pylint: disable=broad-except
    traceback.print_exc()
    os._exit(1)


def _volunteer_for_oom() -> None:
  """Asks Linux to end this process rather than its parent for memory."""
  try:
    with open('/proc/self/oom_score_adj', 'w', encoding='ascii') as file:
      file.write('1000')
  except OSError:  # Not Linux, or not allowed: the kernel's choice stands.
    return


if __name__ == '__main__':
  # Messages name this module by its full name, not '__main__'.
  from gdp_grappler.evaluation import measuring_worker
  measuring_worker.main()
