"""Settings of measurements, and the cores that they use."""

from __future__ import annotations

import dataclasses
import os

from absl import logging

from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib
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
    inter_op_threads: Threads of each local worker that run ops.
    processes: Number of placements that are measured in parallel, each on cores
      of its own. The real number is smaller if there are too few cores.
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
  inter_op_threads: int = local_workers_lib.INTER_OP_THREADS
  processes: int = 1
  cache_dir: str | os.PathLike[str] = ''

  def __post_init__(self) -> None:
    if self.target and self.local_workers:
      raise errors.MeasurementError(
          f'Both a target ({self.target}) and {self.local_workers} local '
          'workers are given. Give one of them.')
    for field in ('steps', 'processes', 'timeout_s', 'connect_s', 'batch_size',
                  'inter_op_threads'):
      if getattr(self, field) <= 0:
        raise errors.MeasurementError(
            f'{field} is {getattr(self, field)}; give more than 0.')


def core_plan(
    config: MeasureConfig,
    cluster: cluster_lib.Cluster) -> list[tuple[list[list[int]], list[int]]]:
  """Cores of the local workers and of the client, for each process.

  The number of processes is at most `config.processes`. It is smaller if
  processes would share cores, GPUs or a target, and so disturb each other.
  """
  have = sorted(os.sched_getaffinity(0))
  each = max(1, config.local_workers)
  room = len(have) // each
  if config.target or any(d.type == 'GPU' for d in cluster.devices):
    room = 1  # Processes cannot share these devices.
  number = max(1, min(config.processes, room))
  if number < config.processes:
    logging.log_first_n(
        logging.WARNING, 'There is room to measure %d placement%s at a time, '
        'not %d.', 1, number, 's' * (number > 1), config.processes)
  if config.local_workers:
    cores = local_workers_lib.divide_cores(number * each, have)
    sets = [cores[i * each:(i + 1) * each] for i in range(number)]
    # While a step runs, the client sleeps. Without pinning, the client would
    # sometimes wake up on another worker's core between two steps, and times
    # would vary more.
    return [(workers, workers[0]) for workers in sets]
  if number == 1:
    return [([], [])]
  return [([], cores) for cores in local_workers_lib.divide_cores(number, have)]
