r"""Prices placers' plans, and runs them on emulated GPUs.

Run it from the repository:

  python -m benchmarks.emulated_gpus --tasks=rnnlm-2@tiny@2xP100 \
      --placers=human_expert,m_etf,local_search --json

prints a list of {"task", "placer", "simulated_s", "measured_s"}. Both seconds
are null if a plan does not run. With --order=critical_path, rows also have
"edges", the number of control edges that are predicted to pay, and the steps
with these edges, "ordered_simulated_s" and "ordered_measured_s". These steps
are of the proposal with the shortest predicted step with edges. Without --json,
the program prints a table, whose last rows are geometric means of the gains by
edges. With --objective=simulated, searches minimise the simulated step instead
of the robust price.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from typing import Any, Sequence

from gdp_grappler import environment
from gdp_grappler import progress

os.environ.update(environment.without_plugin())
os.environ[environment.LEGACY_KERAS] = '1'  # placer_model's.

from benchmarks import tables
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.evaluation import robust_evaluator
from gdp_grappler.evaluation.emulation import emulator as emulator_lib
from gdp_grappler.evaluation.ordering import control_edges
from gdp_grappler.evaluation.ordering import order_names
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.placers import best_of
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import registry as placers
from gdp_grappler.placers.search.edges import edge_selection
from gdp_grappler.workloads import registry
from placer_model.benchmark import loading
from placer_model.benchmark import settings as settings_lib
from placer_model.benchmark import tasks as tasks_lib

_TASKS = ('rnnlm-2@2xP100,rnnlm-4@4xP100,transformer-xl-2@2xP100,'
          'transformer-xl-4@4xP100,wavenet-2x18@2xP100,inception-v3-b32@2xP100,'
          'gnmt-2@2xP100,gnmt-4@4xP100')
_EXPERT = 'human_expert'
_PLACERS = f'{_EXPERT},metis,m_etf,local_search'
_Row = dict[str, Any]
_ROBUST, _SIMULATED = 'robust', 'simulated'


def _table(arguments: argparse.Namespace) -> tables.Table:
  tasks = tasks_lib.parse(arguments.tasks, registry.names(),
                          lambda name: registry.get(name).num_devices)
  of_tasks = progress.of_each('running', tasks,
                              lambda task: _rows(task, arguments),
                              lambda task: task.name)
  return _in_table([row for rows in of_tasks for row in rows])


def _rows(task: tasks_lib.Task, arguments: argparse.Namespace) -> list[_Row]:
  """Returns the rows of all placers on one task."""
  loaded = loading.load(
      task,
      settings_lib.Settings(arguments.seed,
                            time_budget_s=arguments.time_budget_s))
  simulator = simulator_lib.Simulator(loaded.cluster, loaded.cost_model)
  problem = placer_lib.Problem(
      loaded.graph, loaded.cluster,
      robust_evaluator.Robust(simulator) if arguments.objective == _ROBUST else
      simulator, arguments.seed, loaded.expert_devices, arguments.time_budget_s,
      simulator=simulator, may_add_edges=arguments.order != order_names.FIFO)
  result = []
  with emulator_lib.Emulator(loaded.cluster, loaded.cost_model,
                             steps=arguments.steps) as emulator:
    for name in arguments.placers.split(','):
      proposals = best_of.proposals_of(placers.create(name), problem)
      placement = proposals[0]
      simulated, measured = (_seconds(
          evaluator.evaluate(loaded.graph, placement))
                             for evaluator in (simulator, emulator))
      row: _Row = {
          'task': task.name, 'placer': name, 'simulated_s': simulated,
          'measured_s': measured
      }
      if arguments.order != order_names.FIFO:
        row.update(_ordered(problem, proposals, simulator, emulator))
      result.append(row)
  return result


def _ordered(problem: placer_lib.Problem,
             proposals: Sequence[placement_lib.Placement],
             simulator: simulator_lib.Simulator,
             emulator: emulator_lib.Emulator) -> _Row:
  """Simulates and emulates the proposal with the shortest predicted step.

  The proposal gets control edges if they are predicted to shorten its step.
  """
  choice = edge_selection.best(problem, proposals, simulator,
                               lambda _: control_edges.OrderConfig())
  order = choice.order
  # The emulator adds the control edges that the placement keeps.
  placement = choice.with_order if order else dataclasses.replace(
      choice.placement, priorities=None)
  return {
      'edges':
          len(order.control_edges) if order else 0, 'ordered_simulated_s':
              order.with_edges_s if order else _seconds(
                  simulator.evaluate(problem.graph, placement)),
      'ordered_measured_s':
          _seconds(emulator.evaluate(problem.graph, placement))
  }


def _seconds(evaluation: evaluator_lib.Evaluation) -> float | None:
  return evaluation.step_time_s if evaluation.valid else None


def _in_table(rows: list[_Row]) -> tables.Table:
  """Returns the steps of all plans, and the gains by control edges.

  Args:
    rows: At least one.
  """
  keys = [key for key in rows[0] if key.endswith('_s')]
  cells = [[row['task'], row['placer'], *(_ms(row[key]) for key in keys)]
           for row in rows]
  gains = {
      f'{placer}, by control edges': [
          row['measured_s'] / row['ordered_measured_s'] for row in rows
          if row['placer'] == placer and row['measured_s'] and
          row.get('ordered_measured_s')
      ] for placer in dict.fromkeys(row['placer'] for row in rows)
  }
  gains['least price, over the expert without control edges'] = (
      _over_expert(rows))
  cells += [[
      f'gain of {name}', *[''] * len(keys), f'{tables.mean(found):.3f}x'
  ] for name, found in gains.items() if found]
  head = ('task', 'placer', *(key[:-2].replace('_', ' ') for key in keys))
  return tables.Table('steps in ms, simulated and measured on emulated GPUs',
                      head, cells, rows)


def _over_expert(rows: list[_Row]) -> list[float]:
  """Expert step over the step of the plan with the lowest price, by task.

  Prices are with control edges.
  """
  result = []
  for task in dict.fromkeys(row['task'] for row in rows):
    plans = [
        row for row in rows if row['task'] == task and
        row.get('ordered_measured_s') and row['ordered_simulated_s']
    ]
    expert_s = [row['measured_s'] for row in plans if row['placer'] == _EXPERT]
    if any(expert_s):
      best = min(plans, key=lambda row: row['ordered_simulated_s'])
      result.append(expert_s[0] / best['ordered_measured_s'])
  return result


def _ms(seconds: float | None) -> str:
  return 'OOM' if seconds is None else f'{1e3 * seconds:.2f}'


main = tables.program(
    'emulated_gpus', __doc__, 'Emulated GPUs', _table,
    tables.option('--tasks', default=_TASKS),
    tables.option('--placers', default=_PLACERS),
    tables.option('--seed', type=int, default=0),
    tables.option('--time_budget_s', type=float, default=10.,
                  help='of searches'),
    tables.option('--objective', choices=(_ROBUST, _SIMULATED), default=_ROBUST,
                  help='what searches minimise'),
    tables.option('--steps', type=int, default=3),
    tables.option('--order', choices=order_names.ORDERS,
                  default=order_names.FIFO))

if __name__ == '__main__':
  sys.exit(main())
