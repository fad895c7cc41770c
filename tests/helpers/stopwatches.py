"""Evaluators that claim to measure steps but run none."""

from __future__ import annotations

from typing import Callable
import zlib

import numpy as np

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.evaluation.emulation import emulation_worker
from gdp_grappler.evaluation.emulation import machine
from gdp_grappler.evaluation.emulation import timeline
from gdp_grappler.evaluation.measuring import measuring_worker
from gdp_grappler.graph import op_graph
from gdp_grappler.processes import messages


class Stopwatch(evaluator_lib.Wrapper):
  """Returns the prices of another evaluator as measured prices.

  Attributes:
    cluster: Cluster of the other evaluator.
    runs: Number of placements priced so far.
  """

  def __init__(self, prices: evaluator_lib.Evaluator,
               fails: Callable[[np.ndarray], str] = lambda _: ''):
    """Wraps an evaluator.

    Args:
      prices: The evaluator.
      fails: Returns the failure of devices [N]; '' for none.
    """
    super().__init__(prices)
    self.simulated = False
    self.runs = 0
    self._fails = fails

  def evaluate(self, graph: op_graph.OpGraph,
               placement: placement_lib.Placement) -> evaluator_lib.Evaluation:
    self.runs += 1
    found = self._evaluator.evaluate(graph, placement)
    failure = self._fails(placement.devices)
    if not failure:
      return evaluator_lib.Evaluation(found.step_time_s, found.peak_bytes,
                                      found.violations, simulated=False)
    return evaluator_lib.Evaluation(
        np.inf, (0,) * len(found.peak_bytes),
        (placement_lib.Violation(failure, f'bad {failure}'),), simulated=False)


class Runner(Stopwatch):
  """A stopwatch in place of a `Measurer`. It has no processes to end."""

  def __enter__(self) -> Runner:
    return self

  def __exit__(self, *unused_error: object) -> None:
    pass


class FakeBench:
  """A `bench.Bench` with prescribed times and memories.

  A step takes 1 s, and one second more for each op that is not on device 0.
  With control edges it takes twice as long. It fails if device 2 has the first
  op.
  """

  def __init__(self, setup: measuring_worker.Setup, *unused_cores: object):
    self._num_devices = len(setup.device_names)

  def measure(
      self, request: measuring_worker.Request
  ) -> measuring_worker.Timing | messages.Failure:
    if request.devices[0] == 2:
      return messages.Failure('It fell.')
    seconds = 1. + np.count_nonzero(request.devices)
    peaks = np.bincount(request.devices, minlength=self._num_devices)
    return measuring_worker.Timing(seconds * (1 + bool(request.control_edges)),
                                   .1, 3, tuple(peaks.tolist()))

  def close(self) -> None:
    pass


class FakeEmulation:
  """Replaces the process of an `emulator.Emulator`; each step differs."""

  def __init__(self, function: str, *, keras: bool):
    """Starts no process."""
    assert not keras
    self._answer: emulation_worker.Emulated | None = None
    self._num_devices = 0

  def send(self, message: object) -> None:
    """Takes a message for the process."""
    if isinstance(message, machine.Machine):
      self._num_devices = message.cluster.num_devices
    if isinstance(message, emulation_worker.Request):
      wanted = message.devices.tobytes() + message.control_edges.tobytes()
      end_ns = 1 + zlib.crc32(wanted)
      # One kernel; see the columns of `timeline`.
      row = np.array([[0, 0, -1, 0, 0, 0, 0, 0, end_ns]])
      self._answer = emulation_worker.Emulated((timeline.from_records(
          row, 0, len(message.devices), np.arange(self._num_devices)),),
                                               (0,) * self._num_devices)

  def receive(self, timeout_s: float) -> emulation_worker.Emulated | None:
    """Answers at once."""
    return self._answer

  def close(self) -> None:
    """Does nothing, because there is no process."""
