"""Sessions of a calibration, and the timing of their steps.

A step of a session ends when the device has finished. The time of an op is the
difference of two steps, one of which has more copies of the op.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from typing import Any, Callable, Iterator, Sequence, TypeVar

import numpy as np
import tensorflow as tf

from gdp_grappler import deadlines
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.evaluation.calibrating import inputs
from gdp_grappler.evaluation.measuring import session_config

_T = TypeVar('_T')
_WARM_STEPS = 2  # Steps before the first step that is timed.
_ROUNDS = 7  # Rounds of timing; a round has each step once.
_LEAST_ROUNDS = 3  # Least number of such rounds, even without time left.


@dataclasses.dataclass(frozen=True)
class Bench:
  """Devices and settings of a calibration.

  Attributes:
    device: Assumed figures of the card, for the choice of sizes.
    logical: Number of logical devices into which the card is cut.
    cards: Number of cards in use: 1, or 2 if transfers to another card are
      timed.
    memory_bytes: Memory of the first logical device.
    small_bytes: Memory of each other logical device.
    deadline: Deadline of the measurements.
  """

  device: cluster_lib.Device
  logical: int
  cards: int = 1
  memory_bytes: int = 1 << 32
  small_bytes: int = 1 << 29
  deadline: deadlines.Deadline = deadlines.NEVER

  @property
  def kind(self) -> str:
    """'GPU', or 'CPU' if a CPU takes the place of a card."""
    return self.device.type

  @property
  def on_gpu(self) -> bool:
    """Whether the calibrated device is a GPU."""
    return self.kind == 'GPU'

  def name(self, number: int = 0) -> str:
    """Name of a logical device; a second card's device comes last."""
    # CPU:0 is the host, also if CPUs take the place of cards.
    return f'/device:{self.kind}:{number + (0 if self.on_gpu else 1)}'

  @property
  def busy_rows(self) -> int:
    """Rows of the matrices of the products before timed hops.

    On a card such a product takes longer than a launch.
    """
    return 1024 if self.on_gpu else 32

  @property
  def host(self) -> str:
    """The CPU that feeds the card."""
    return '/device:CPU:0'

  @property
  def other_card(self) -> str | None:
    """A logical device of another card, if there is one."""
    return self.name(self.logical) if self.cards > 1 else None

  def config(self) -> Any:
    """A ConfigProto; the same for all sessions of a process."""
    cpus = 1 if self.on_gpu else self.logical + 1
    config = session_config.as_it_is(cpus)
    if self.on_gpu:
      # TensorFlow needs as many visible devices as lists of memory limits.
      config.gpu_options.visible_device_list = ','.join(
          map(str, range(self.cards)))
      parts = config.gpu_options.experimental.virtual_devices
      parts.add(memory_limit_mb=[
          self.memory_bytes >> 20, *([self.small_bytes >> 20]
                                     * (self.logical - 1))
      ])
      for _ in range(self.cards - 1):
        parts.add(memory_limit_mb=[self.small_bytes >> 20])
    else:
      config.session_inter_op_thread_pool.add(num_threads=1)
    config.isolate_session_state = True
    return config

  @contextlib.contextmanager
  def built(self, build: Callable[[inputs.Inputs],
                                  _T]) -> Iterator[tuple[Any, _T]]:
    """A session with initialized inputs, and the result of `build`.

    Args:
      build: Function that builds the graph, on the calibrated device.
    """
    with tf.Graph().as_default():
      make = inputs.Inputs(self.on_gpu)
      with tf.device(self.name()):
        result = build(make)
      with tf.compat.v1.Session(config=self.config()) as session:
        session.run([v.initializer for v in make.variables])
        yield session, result


def quick(steps: Sequence[Callable[[], Any]],
          deadline: deadlines.Deadline = deadlines.NEVER) -> list[float]:
  """Seconds of each step: the first quartile of some rounds.

  The steps run in turns, and in fewer rounds if time runs out. The quartile is
  the first one, because longer times contain time of other programs.
  """
  for step in steps:
    for _ in range(_WARM_STEPS):
      step()
  seconds: list[list[float]] = [[] for _ in steps]
  for number in range(_ROUNDS):
    if number >= _LEAST_ROUNDS and deadline.passed:
      break
    for step, row in zip(steps, seconds):
      begin = time.perf_counter()
      step()
      row.append(time.perf_counter() - begin)
  return [float(np.quantile(row, .25)) for row in seconds]
