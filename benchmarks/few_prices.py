"""Steps of searches that price few placements.

Run it from the repository:

  python -m benchmarks.few_prices --priced=300 rnnlm-2@2xP100 amoebanet@4xP100

Each search begins with the anchors of the default placer, which are placements
by cheap placers. It stops after --priced placements in FIFO order, anchors
included. The first search ("plain") prices all moves that it draws. The second
("chosen") prices the moves that the shipped network chooses. For comparison,
`best_of` is the best of all placers that do not search.

With --json, prints a list of {"task", "seed", "best_of_s", "plain_s",
"chosen_s"}: simulated steps. Without --json, prints a table with geometric
means over seeds, and with best_of / chosen: geometric mean, least and most.

With --cost, no search runs. Instead the program prints the processor seconds of
the placer gdp_policy with its usual number of prices, by part, for the quickest
seed.
"""

from __future__ import annotations

import math
import sys
import time
from typing import Any, Sequence

import numpy as np

from benchmarks import part_times
from benchmarks import tables
from gdp_grappler import progress
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.simulation import native_simulator
from gdp_grappler.features.moves import featurizer
from gdp_grappler.graph.structure import coordinates
from gdp_grappler.placers import annealing_placer
from gdp_grappler.placers import best_of
from gdp_grappler.placers import default_placer
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.coordinates import structured
from gdp_grappler.placers.list_scheduling import native_scheduler
from gdp_grappler.placers.list_scheduling import proposals
from gdp_grappler.placers.partitioning import metis
from gdp_grappler.placers.partitioning import partitioning
from gdp_grappler.placers.policy import move_policy
from gdp_grappler.placers.search import search_budget
from gdp_grappler.placers.search import staged_search
from gdp_grappler.placers.search.moves import move_network
from gdp_grappler.placers.search.moves import moves as moves_lib
from gdp_grappler.placers.search.moves import native_drawer
from gdp_grappler.placers.search.moves import shipped_moves
from gdp_grappler.problems import reading

_TITLE = 'Few prices'
_COST_TITLE = 'What gdp_policy costs'
_HEAD = ('task', 'best_of', 'plain', 'chosen', 'best_of / chosen', 'least',
         'most')
_STEPS = 'best_of_s', 'plain_s', 'chosen_s'
_Row = dict[str, Any]
# Functions of each part of `gdp_policy`; other functions are `other`.
_PARTS: dict[str, Sequence[part_times.Function]] = {
    'coordinates': [(coordinates, 'of')],
    'maps': [(structured, 'candidates')],
    'cuts': [(partitioning, 'make_targets'), (metis, '_proposal')],
    'schedules': [(proposals.Proposals, 'tasks'),
                  (proposals.Proposals, 'schedule'),
                  (native_scheduler, 'favourites')],
    'prices': [(native_simulator.PreparedGraph, 'run')],
    'sets': [(moves_lib.Moves, '_layout')],
    'draws': [(native_drawer.NativeDrawer, 'draw')],
    'features': [(featurizer.MoveFeaturizer, 'observe'),
                 (featurizer.MoveFeaturizer, 'describe')],
    'network': [(move_network.MoveNetwork, 'predict')],
}


def _rows(task: str, priced: int, seeds: int) -> list[_Row]:
  """Returns a row for each seed."""
  step = reading.read_task(task, progress.doing)
  simulator = step.simulator()
  problem = step.problem(simulator)

  def seconds(placement: placement_lib.Placement) -> float:
    found = simulator.evaluate(problem.graph, placement)
    return found.step_time_s if found.valid else math.inf

  best_s = seconds(best_of.BestOfPlacer().place(problem))
  starts = np.concatenate(
      list(
          annealing_placer.starting_points(problem, default_placer.ANCHORS,
                                           np.random.default_rng(0)).values()))
  network_models = staged_search.models_of(shipped_moves.network())
  rows = []
  for seed in range(seeds):
    row: _Row = {'task': task, 'seed': seed, 'best_of_s': best_s}
    for name, models in (('plain', staged_search.no_model), ('chosen',
                                                             network_models)):
      found, = staged_search.search(problem, starts,
                                    np.random.default_rng(seed),
                                    search_budget.SearchBudget(priced), models)
      row[f'{name}_s'] = seconds(found)
    rows.append(row)
  return rows


def _cost(task: str, seeds: int) -> list[_Row]:
  """Returns a row with the processor seconds of the quickest seed."""
  step = reading.read_task(task, progress.doing)
  shipped_moves.network()
  rows = []
  for seed in range(seeds):
    # A copy has no cached results.
    fresh = step.graph.replace()
    problem = placer_lib.Problem(fresh, step.cluster,
                                 step.problem().evaluator, seed)
    with part_times.clocked(_PARTS) as seconds:
      begin = time.process_time()
      move_policy.MovePolicyPlacer().proposals(problem)
      all_s = time.process_time() - begin
    rows.append({
        'task': task, 'ops': fresh.num_ops, 'all_s': all_s, **{
            f'{part}_s': s for part, s in seconds.items()
        }, 'other_s': all_s - sum(seconds.values())
    })
  return [min(rows, key=lambda row: row['all_s'])]


def _cost_table(rows: Sequence[_Row]) -> tables.Table:
  columns = ['all_s', *(f'{part}_s' for part in _PARTS), 'other_s']
  cells = [[
      row['task'], f'{row["ops"]:,}', *(f'{row[c]:.2f}' for c in columns)
  ] for row in rows]
  return tables.Table(
      'processor seconds of gdp_policy, measured',
      ('task', 'ops', *(column.removesuffix('_s') for column in columns)),
      cells, rows)


def _table(found: Sequence[Sequence[_Row]], priced: int) -> tables.Table:
  return tables.Table(f'steps simulated, {priced} placements priced', _HEAD,
                      tables.step_cells(found, _STEPS, (_STEPS[0], _STEPS[2])),
                      [row for rows in found for row in rows])


main = tables.program_of_tasks(
    'few_prices', __doc__, lambda given: _COST_TITLE
    if given.cost else _TITLE, 'searching', lambda task, given:
    (_cost(task, given.seeds)
     if given.cost else _rows(task, given.priced, given.seeds)),
    lambda found, given: (_cost_table([row for rows in found for row in rows])
                          if given.cost else _table(found, given.priced)),
    tables.option('--priced', type=int, default=300),
    tables.option(
        '--cost', action='store_true',
        help='processor seconds of gdp_policy by part, and no search'))

if __name__ == '__main__':
  sys.exit(main())
