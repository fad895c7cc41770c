"""The process behind `emulator`: runs graphs on emulated GPUs.

The process communicates by its standard input and output; see `messages`. The
first message is a `Machine`. The answer is None when TensorFlow has the GPUs.
Every further message is a `Load`, which has no answer, or a `Request`, whose
answer is an `Emulated` or a `NotEmulated`. The process ends when its input
ends.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from typing import Any, Callable

import numpy as np

from gdp_grappler import errors
from gdp_grappler.evaluation.emulation import emulated_graph
from gdp_grappler.evaluation.emulation import machine as machine_lib
from gdp_grappler.evaluation.emulation import native_gpus
from gdp_grappler.evaluation.emulation import timeline as timeline_lib
from gdp_grappler.evaluation.measuring import session_config
from gdp_grappler.processes import messages

_MESSAGE_CHARACTERS = 300  # Length of a message of TensorFlow, at the most.


@dataclasses.dataclass(frozen=True, eq=False)
class Load:
  """A graph for later requests.

  Attributes:
    number: Number by which requests refer to the graph.
    graph: The graph.
  """

  number: int
  graph: emulated_graph.EmulatedGraph


@dataclasses.dataclass(frozen=True, eq=False)
class Request:
  """One placement.

  Attributes:
    graph: Number of a loaded graph.
    devices: int [N], indices of the cluster's devices.
    control_edges: int [C, 2], pairs of ops; the second waits for the first.
    steps: Number of steps to run.
  """

  graph: int
  devices: np.ndarray
  control_edges: np.ndarray
  steps: int


@dataclasses.dataclass(frozen=True, eq=False)
class Emulated:
  """The steps of a placement.

  Attributes:
    timelines: Timeline of each step, by increasing step time.
    peak_bytes: [D], most bytes that were allocated at a time; 0 for the host,
      whose memory is not emulated.
  """

  timelines: tuple[timeline_lib.Timeline, ...]
  peak_bytes: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class NotEmulated:
  """The reason why a placement did not run.

  Attributes:
    kind: Kind of a `placement.Violation`: 'memory' or 'run'.
    message: One line with the reason.
  """

  kind: str
  message: str


def main() -> None:
  """Serves until the input ends."""
  _keep_to_one_core()
  answers = messages.begin_child()
  try:
    worker = Worker(messages.receive(sys.stdin.buffer.read))
    messages.send(answers, None)
    while True:
      message = messages.receive(sys.stdin.buffer.read)
      if isinstance(message, Load):
        worker.load(message)
      else:
        messages.send(answers, worker.run(message))
  except EOFError:
    return


def _keep_to_one_core() -> None:
  """Pins the process to one core, so that emulation is twice as fast.

  The emulated time passes only when all threads sleep. On one core threads run
  one after the other and reach this state sooner.
  """
  cores = sorted(os.sched_getaffinity(0))
  os.sched_setaffinity(0, {cores[os.getpid() % len(cores)]})


class Worker:
  """Runs graphs on the emulated GPUs of this process."""

  def __init__(self, machine: machine_lib.Machine):
    """Makes the emulated GPUs; there can be one worker per process."""
    self._machine = machine
    self._gpus = native_gpus.NativeGpus(machine)
    self._graphs: dict[int, tuple[emulated_graph.EmulatedGraph, Any]] = {}

  def load(self, message: Load) -> None:
    """Keeps a graph for later requests."""
    self._graphs[message.number] = (message.graph,
                                    emulated_graph.node_defs(message.graph))

  def run(self, request: Request) -> Emulated | NotEmulated:
    """Runs one placement in a session of its own."""
    import tensorflow as tf
    try:
      return self._run(request)
    except tf.errors.ResourceExhaustedError as error:
      return NotEmulated('memory', errors.one_line(error, _MESSAGE_CHARACTERS))
    except (tf.errors.OpError, ValueError) as error:
      return NotEmulated('run', errors.one_line(error, _MESSAGE_CHARACTERS))

  def _run(self, request: Request) -> Emulated:
    import tensorflow as tf
    graph, template = self._graphs[request.graph]
    placed = emulated_graph.placed(template, request.devices,
                                   self._machine.session_devices,
                                   request.control_edges)
    with tf.compat.v1.Session(graph=_imported(placed),
                              config=self._config()) as session:
      step = _runs(session, graph.sinks())
      self._gpus.set_costs(graph, timeless=True)
      step()  # The first step initializes TensorFlow's executors.
      self._peaks()  # Peaks of this step, and of a placement that failed.
      self._gpus.set_costs(graph)
      timelines = [
          self._gpus.run(step, graph.num_ops) for _ in range(request.steps)
      ]
    timelines.sort(key=lambda timeline: timeline.step_time_s)
    return Emulated(tuple(timelines), self._peaks())

  def _config(self) -> Any:
    """Settings under which ops stay as placed, and may use all memory."""
    config = session_config.as_it_is(num_cpus=1)
    config.inter_op_parallelism_threads = self._machine.inter_op_threads
    config.intra_op_parallelism_threads = 1
    # Time passes only while all threads sleep.
    config.experimental.disable_thread_spinning = True
    # Else TensorFlow would leave 255 MiB or 6 % of each GPU to libraries.
    config.pluggable_device_options.per_process_gpu_memory_fraction = 1.
    return config

  def _peaks(self) -> tuple[int, ...]:
    """[D], peaks of TensorFlow's allocators since the last call."""
    import tensorflow as tf
    result = []
    for name in self._machine.session_devices:
      if 'GPU' not in name:
        result.append(0)
        continue
      result.append(int(tf.config.experimental.get_memory_info(name)['peak']))
      tf.config.experimental.reset_memory_stats(name)
    return tuple(result)


def _imported(graph_def: Any) -> Any:
  """A tf.Graph of a GraphDef, without Python objects for its ops.

  `tf.import_graph_def` makes a Python object for each op. For thousands of ops
  this would take most of a placement's time.
  """
  import tensorflow as tf
  from tensorflow.python.client import pywrap_tf_session
  result = tf.Graph()
  with result._c_graph.get() as graph:
    pywrap_tf_session.TF_GraphImportGraphDefWithResultsNoSerialization(
        graph, graph_def, pywrap_tf_session.TF_NewImportGraphDefOptions())
  return result


def _runs(session: Any, targets: list[str]) -> Callable[[], object]:
  """A function that runs the ops with the given names."""
  from tensorflow.core.protobuf import config_pb2
  return session._make_callable_from_options(
      config_pb2.CallableOptions(target=targets))
