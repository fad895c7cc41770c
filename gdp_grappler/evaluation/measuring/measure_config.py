"""How steps are measured, and on which cores."""

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
  """How a `Measurer` measures.

  Attributes:
    steps: Steps per round; rounds go on until the median is stable.
    warmup: Steps that do not count.
    budget_s: No further round once this has passed.
    tolerance: How stable a median has to be; see `timing.Schedule`.
    timeout_s: A placement whose steps take longer together hangs.
    batch_size: For inputs whose first dimension is unknown.
    target: 'grpc://host:port' of a TensorFlow cluster to run on; '' for the
      devices of this machine.
    connect_s: A target that does not answer for so long is unreachable.
    local_workers: Servers to start and to run on, each on its own cores; 0 for
      none. Their devices are `local_workers.device_names`.
    inter_op_threads: Of each local worker.
    processes: Placements measured side by side, each on cores of its own; no
      more than there is room for.
    cache_dir: Folder that keeps what was measured, for later runs; '' for
      none.
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

  Fewer processes than asked for where they would disturb each other.
  """
  have = sorted(os.sched_getaffinity(0))
  each = max(1, config.local_workers)
  room = len(have) // each
  if config.target or any(d.type == 'GPU' for d in cluster.devices):
    room = 1  # Devices that cannot be divided.
  number = max(1, min(config.processes, room))
  if number < config.processes:
    logging.log_first_n(
        logging.WARNING, 'There is room to measure %d placement%s at a time, '
        'not %d.', 1, number, 's' * (number > 1), config.processes)
  if config.local_workers:
    cores = local_workers_lib.divide_cores(number * each, have)
    sets = [cores[i * each:(i + 1) * each] for i in range(number)]
    # While a step runs the client sleeps; between two steps it would wake up
    # on another worker's core now and then, and spread the times.
    return [(workers, workers[0]) for workers in sets]
  if number == 1:
    return [([], [])]
  return [([], cores) for cores in local_workers_lib.divide_cores(number, have)]
