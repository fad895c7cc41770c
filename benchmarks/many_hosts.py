"""Prints simulated steps of placements on many hosts, and of experts.

Run it from the repository with `python -m benchmarks.many_hosts`. The workloads
are those of the papers. The placements are:

* the papers' experts: a layer on each device, the devices host after host;
* the experts' layers, each on the next host;
* all ops on one device;
* hosts first, then their devices (`hierarchical`);
* the default placer without its network, with a limit of --time_budget_s.

The seconds of the placers are wall-clock seconds.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
import time
from typing import Iterator

import numpy as np

from benchmarks import tables
from gdp_grappler import errors
from gdp_grappler import progress
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import presets
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import registry
from gdp_grappler.problems import reading
from gdp_grappler.problems import request

_TITLE = 'Many hosts'
_HEAD = ('workload', 'ops', 'placed by', 'step', 'over the expert',
         'devices in use', 'seconds')
_TASKS = 'gnmt-8,rnnlm-8,transformer-xl-8'
_EXPERT = 'expert, a layer on each device'


@dataclasses.dataclass(frozen=True)
class _Row:
  """A placement of a workload.

  Attributes:
    workload: Name of the workload.
    ops: N.
    placer: Name of the placer.
    step_s: Seconds of the simulated step, first in, first out. Infinite if the
      placement does not fit.
    expert_s: Seconds of the simulated step of the expert's placement.
    devices: Number of devices in use.
    seconds: Seconds that the placer took.
  """

  workload: str
  ops: int
  placer: str
  step_s: float
  expert_s: float
  devices: int
  seconds: float

  @property
  def cells(self) -> tuple[str, ...]:
    fit = math.isfinite(self.step_s) and math.isfinite(self.expert_s)
    return (self.workload, f'{self.ops:,}', self.placer,
            tables.milliseconds(self.step_s),
            f'{self.expert_s / self.step_s:.2f}x' if fit else '-',
            str(self.devices), f'{self.seconds:.1f}')


def _table(arguments: argparse.Namespace) -> tables.Table:
  cluster = presets.preset(arguments.cluster)
  rows = [
      row for task in progress.of_each(
          'placing', arguments.tasks.split(','),
          lambda task: list(_rows(task, cluster, arguments.time_budget_s)))
      for row in task
  ]
  return tables.Table(f'placements on {cluster.name}, simulated', _HEAD,
                      [row.cells for row in rows],
                      [dataclasses.asdict(row) for row in rows])


def _rows(task: str, cluster: cluster_lib.Cluster,
          budget_s: float) -> Iterator[_Row]:
  """Returns the rows of a workload.

  Raises:
    GdpError: there is no such workload, or no expert has placed it.
  """
  step = reading.read(request.Request(task), lambda _: cluster, lambda _: None)
  problem = dataclasses.replace(step.problem(), time_budget_s=budget_s)
  if problem.expert_devices is None:
    raise errors.GdpError(f"There is no human expert's placement of {task}.")
  spread = dataclasses.replace(
      problem, expert_devices=_over_hosts(problem.expert_devices, cluster))
  expert_s = math.nan
  for name, placer, posed in ((_EXPERT, 'human_expert', problem),
                              ('expert, layers on hosts', 'human_expert',
                               spread), ('one device', 'single_device',
                                         problem), ('hierarchical',
                                                    'hierarchical', problem),
                              ('default without network', 'gdp_no_network',
                               problem)):
    row = _row(task, name, placer, posed)
    if name == _EXPERT:
      expert_s = row.step_s
    yield dataclasses.replace(row, expert_s=expert_s)


def _row(task: str, name: str, placer: str,
         problem: placer_lib.Problem) -> _Row:
  start_s = time.perf_counter()
  placement = registry.create(placer).place(problem)
  seconds = time.perf_counter() - start_s
  found = problem.evaluator.evaluate(problem.graph, placement)
  used = np.unique(placement.devices)
  return _Row(task, problem.graph.num_ops, name,
              found.step_time_s if found.valid else math.inf, math.nan,
              int(np.isin(used, problem.cluster.accelerators).sum()), seconds)


def _over_hosts(devices: np.ndarray,
                cluster: cluster_lib.Cluster) -> np.ndarray:
  """Returns int [N], with the ops of accelerator k on one device of host k.

  If there are more accelerators than hosts, the hosts take turns.
  """
  first: dict[str, int] = {}
  for device in cluster.accelerators:
    first.setdefault(cluster_lib.task(cluster.device_names[device]), device)
  hosts = list(first.values())
  result = np.arange(cluster.num_devices)
  for number, device in enumerate(cluster.accelerators):
    result[device] = hosts[number % len(hosts)]
  return result[devices]


main = tables.program('many_hosts', __doc__, _TITLE, _table,
                      tables.option('--tasks', default=_TASKS),
                      tables.option('--cluster', default='8x8xH100-ib400'),
                      tables.option('--time_budget_s', type=float, default=60.))

if __name__ == '__main__':
  sys.exit(main())
