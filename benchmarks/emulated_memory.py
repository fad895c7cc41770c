"""Finds the least memory with which plans run on emulated GPUs.

Run it from the repository:

  python -m benchmarks.emulated_memory rnnlm-2@2xP100 --placers=human_expert

A plan that just fits by the simulator may still run out of memory, because the
allocator loses memory to gaps between tensors. So TensorFlow's own executor and
allocator run the plan over emulated GPUs. All GPUs have the same memory: a
multiple of the largest peak that the simulator predicts for one of them. A
bisection looks for the least multiple with which the plan runs. Each memory
takes a process of its own.

Prints a list of {"task", "placer", "peak_bytes", "in_use", "too_little",
"enough"}: the simulated peak; and as multiples of it the largest use of a
memory in the run with the least memory, a memory with which the plan does not
run, and the least one with which it runs. Without --json, a table.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys

from benchmarks import tables
from gdp_grappler import errors
from gdp_grappler import progress
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.evaluation.emulation import emulator as emulator_lib
from gdp_grappler.placers import registry
from gdp_grappler.placers import step as step_lib
from gdp_grappler.problems import reading
from gdp_grappler.reports import units

_TITLE = 'Emulated memory'
_HEAD = ('task', 'placer', 'simulated peak', 'most in use', 'does not run with',
         'runs with')
_AMPLE = 200, 400, 800, 1600  # Percent of the simulated peak.


@dataclasses.dataclass(frozen=True)
class _Row:
  """A plan, and the memory that it needs.

  Attributes:
    task: Graph and cluster.
    placer: Name of the placer that made the plan.
    peak_bytes: Simulated peak of the GPU with the largest one, in bytes.
    in_use: The largest use of a GPU's memory in the run with `enough`, as a
      multiple of the simulated peak, like the two below.
    too_little: A memory with which the plan does not run.
    enough: The least memory with which it was seen to run.
  """

  task: str
  placer: str
  peak_bytes: int
  in_use: float
  too_little: float
  enough: float

  @property
  def cells(self) -> tuple[str, ...]:
    return (self.task, self.placer, units.amount(self.peak_bytes, 'B'),
            *(f'{multiple:.2f}'
              for multiple in (self.in_use, self.too_little, self.enough)))


def _table(arguments: argparse.Namespace) -> tables.Table:
  of_tasks = progress.of_each('emulating', arguments.tasks,
                              lambda task: _rows(task, arguments), str)
  rows = [row for of_task in of_tasks for row in of_task]
  return tables.Table('memory of emulated GPUs, over the simulated peak', _HEAD,
                      [row.cells for row in rows],
                      [dataclasses.asdict(row) for row in rows])


def _rows(task: str, arguments: argparse.Namespace) -> list[_Row]:
  step = reading.read_task(task, progress.doing)
  problem = dataclasses.replace(step.problem(), time_budget_s=arguments.seconds)
  return [
      _row(task, placer, step,
           registry.create(placer).place(problem), arguments.precision)
      for placer in arguments.placers.split(',')
  ]


def _row(task: str, placer: str, step: step_lib.Step,
         placement: placement_lib.Placement, precision: int) -> _Row:
  """Searches for the least memory with which a step runs.

  The result is exact to `precision` percent of the simulated peak, but at best
  to one percent.

  Raises:
    GdpError: the plan leaves all GPUs empty, or cannot be emulated.
  """
  peak_bytes = _most(step.simulator().evaluate(step.graph, placement),
                     step.cluster)
  if not peak_bytes:
    raise errors.GdpError(
        f'The plan of {placer} for {task} has nothing on a GPU, so its memory '
        'cannot be emulated. Take a placer or a graph that uses GPUs.')

  def run(percent: int) -> int:
    progress.doing(f'{placer}, {percent} % of the simulated peak')
    return _in_use(step, placement, peak_bytes * percent // 100)

  too_little = 0
  for enough in _AMPLE:
    if in_use := run(enough):
      break
    too_little = enough
  else:
    raise errors.GdpError(
        f'The plan of {placer} for {task} does not run with {too_little} % of '
        'the simulated peak, which is most likely an error of the simulator. '
        'Please report it.')
  while enough - too_little > max(precision, 1):
    middle = (too_little + enough) // 2
    if found := run(middle):
      enough, in_use = middle, found
    else:
      too_little = middle
  return _Row(task, placer, peak_bytes, in_use / peak_bytes, too_little / 100,
              enough / 100)


def _in_use(step: step_lib.Step, placement: placement_lib.Placement,
            memory_bytes: int) -> int:
  """The most bytes in use on a GPU, or 0 if the step runs out of memory.

  Raises:
    GdpError: the step fails for another reason.
  """
  cluster = dataclasses.replace(
      step.cluster, devices=tuple(
          dataclasses.replace(device, memory_bytes=memory_bytes,
                              memory_margin=0.) if device.type ==
          'GPU' else device for device in step.cluster.devices))
  with emulator_lib.Emulator(cluster, step.simulator().cost_model) as emulator:
    found = emulator.evaluate(step.graph,
                              dataclasses.replace(placement, cluster=cluster))
  for violation in found.violations:
    if violation.kind != 'memory':
      raise errors.GdpError(
          f'A step of {step.graph.name} cannot be emulated: '
          f'{violation.message}. Take another placer or graph.')
  return _most(found, cluster) if found.valid else 0


def _most(found: evaluator_lib.Evaluation, cluster: cluster_lib.Cluster) -> int:
  """Returns the peak bytes of the fullest GPU."""
  return max((found.peak_bytes[pool]
              for device, pool in zip(cluster.devices, cluster.memory_pools)
              if device.type == 'GPU'), default=0)


main = tables.program(
    'emulated_memory', __doc__, _TITLE, _table,
    tables.option('tasks', nargs='+', metavar='GRAPH@CLUSTER'),
    tables.option('--placers', default='m_etf'),
    tables.option('--seconds', type=float, default=10., help='of a search'),
    tables.option('--precision', type=int, default=2,
                  help='percent of the simulated peak'))

if __name__ == '__main__':
  sys.exit(main())
