"""Settings of measurements, and the cores that they use."""

from __future__ import annotations

import dataclasses
import os

from gdp_grappler import errors
from gdp_grappler.evaluation.measuring import local_workers as local_workers_lib
from gdp_grappler.graph import assumptions


@dataclasses.dataclass(frozen=True)
class MeasureConfig:
  """Settings of a `Measurer`.

  Attributes:
    steps: Steps per round; rounds are repeated until the median is stable.
    warmup: Steps that do not count, before the first round.
    budget_s: Seconds after which no further round begins.
    tolerance: Largest relative change of a stable median; see
      `timing.Schedule`.
    timeout_s: Seconds after which a placement counts as hanging, for all its
      steps together.
    batch_size: Size of unknown dimensions of inputs.
    target: 'grpc://host:port' of a TensorFlow cluster to run on; '' for the
      devices of this machine.
    connect_s: Seconds after which a target without an answer is unreachable.
    local_workers: Number of local servers to start and to run on, each on its
      own cores; 0 for none. Their devices are `local_workers.device_names`.
    cache_dir: Folder that keeps results for later runs; '' for none.
  """

  steps: int = 5
  warmup: int = 2
  budget_s: float = 20.
  tolerance: float = .02
  timeout_s: float = 300.
  batch_size: int = assumptions.DEFAULT_BATCH_SIZE
  target: str = ''
  connect_s: float = 10.
  local_workers: int = 0
  cache_dir: str | os.PathLike[str] = ''

  def __post_init__(self) -> None:
    if self.target and self.local_workers:
      raise errors.MeasurementError(
          f'Both a target ({self.target}) and {self.local_workers} local '
          'workers are given. Give one of them.')
    if self.local_workers < 0:
      raise errors.MeasurementError(
          f'local_workers is {self.local_workers}; give 0 or more.')
    for field in ('steps', 'timeout_s', 'connect_s', 'batch_size'):
      if getattr(self, field) <= 0:
        raise errors.MeasurementError(
            f'{field} is {getattr(self, field)}; give more than 0.')


def divided_cores(config: MeasureConfig) -> tuple[list[list[int]], list[int]]:
  """Cores of the local workers and of the client.

  Returns:
    Cores of each local worker, [] if there are none; and cores of the client,
    [] for any cores.
  """
  if not config.local_workers:
    return [], []
  workers = local_workers_lib.divide_cores(config.local_workers)
  # While a step runs, the client sleeps. Without pinning, the client would
  # sometimes wake up on another worker's core between two steps, and times
  # would vary more.
  return workers, workers[0]
