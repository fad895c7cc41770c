"""Steps of searches with and without coordinate sets and the move network.

Run it from the repository:

  python -m benchmarks.move_network rnnlm-2@2xP100 amoebanet@4xP100

Each search begins with placements of cheap placers, and anneals for equal
processor seconds in FIFO order (with --ordered, in the order of priorities).
There are three searches. 'loose' prices all moves that it draws, and draws no
sets of coordinates. 'plain' also draws these sets. 'chosen' prices the moves
that the shipped network chooses.

With --json, prints a list of {"task", "seed", "loose_s", "plain_s", "chosen_s",
"loose_priced", "plain_priced", "chosen_priced"}: simulated steps of the best
placements, and numbers of priced placements. Without --json, prints a table of
the steps, of loose / plain, and of plain / chosen: geometric mean, least and
most over seeds.
"""

from __future__ import annotations

import math
import sys
import time
from typing import Any, Sequence

import numpy as np

from benchmarks import tables
from gdp_grappler import progress
from gdp_grappler.placers import annealing_placer
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.search import annealing
from gdp_grappler.placers.search import priority_annealing
from gdp_grappler.placers.search import search_budget
from gdp_grappler.placers.search import search_config
from gdp_grappler.placers.search import staged_search
from gdp_grappler.placers.search.moves import moves
from gdp_grappler.placers.search.moves import shipped_moves
from gdp_grappler.problems import reading

_TITLE, _ORDERED_TITLE = 'Move network', 'Move network under priorities'
_HEAD = ('task', 'loose', 'plain', 'chosen', 'loose / plain', 'plain / chosen',
         'least', 'most')
_WAYS = 'loose', 'plain', 'chosen'
_STEPS = 'loose_s', 'plain_s', 'chosen_s'
_LOOSE = [
    kind for kind in moves.Moves.kinds if not kind.startswith('coordinate')
]
_Row = dict[str, Any]


def _rows(task: str, seconds: float, seeds: int, ordered: bool) -> list[_Row]:
  """Returns a row for each seed."""
  problem = reading.read_task(task, progress.doing).problem()
  starts = np.concatenate(
      list(
          annealing_placer.starting_points(problem,
                                           annealing_placer.DEFAULT_STARTS,
                                           np.random.default_rng(0)).values()))
  rows = []
  for seed in range(seeds):
    row: _Row = {'task': task, 'seed': seed}
    for name in _WAYS:
      search = _search(problem, starts, seed, name, ordered)
      limit = search_budget.SearchBudget(sys.maxsize, seconds,
                                         clock=time.process_time)
      while (done := limit.progress(search.evaluations)) < 1:
        search.price_batch(done, search_config.DEFAULT.annealing.batch)
      invalid, *_, step_s = search.best_key
      row[f'{name}_s'] = math.inf if invalid else step_s
      row[f'{name}_priced'] = search.evaluations
    rows.append(row)
  return rows


def _search(
    problem: placer_lib.Problem, starts: np.ndarray, seed: int, way: str,
    ordered: bool
) -> annealing.Annealing | priority_annealing.PriorityAnnealing:
  rng = np.random.default_rng(seed)
  models = (staged_search.models_of(shipped_moves.network())
            if way == 'chosen' else staged_search.no_model)
  model = models(problem)
  own = moves.Moves(problem, _LOOSE if way == 'loose' else moves.Moves.kinds)
  if not ordered:
    return annealing.Annealing(problem, starts, rng, model, own)
  ranking = annealing.Annealing(problem, starts, rng).ranking
  return priority_annealing.PriorityAnnealing(
      problem, starts[ranking[:search_config.DEFAULT.start.best]], rng, model,
      own)


def _table(found: Sequence[Sequence[_Row]], ordered: bool) -> tables.Table:
  order = 'under priorities' if ordered else 'first in, first out'
  return tables.Table(f'steps simulated, {order}; seconds of the processor',
                      _HEAD,
                      tables.step_cells(found, _STEPS, _STEPS[:2], _STEPS[1:]),
                      [row for rows in found for row in rows])


main = tables.program_of_tasks(
    'move_network', __doc__, lambda given: _ORDERED_TITLE
    if given.ordered else _TITLE, 'searching',
    lambda task, given: _rows(task, given.seconds, given.seeds, given.ordered),
    lambda found, given: _table(found, given.ordered),
    tables.option('--ordered', action='store_true'), seconds=10.)

if __name__ == '__main__':
  sys.exit(main())
