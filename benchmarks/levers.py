"""Steps of the default placer's search if one of its parts (levers) is off.

Run it from the repository:

  python -m benchmarks.levers rnnlm-2@2xP100 amoebanet@4xP100

Each search begins with the proposals of the anchors and of `gdp_policy`.
--seconds is the processor time of a search. The time of the policy counts, the
time of the anchors does not. The placements that a search finds get the control
edges that pay. The program searches with all levers ('all'), and without each:

  network: no network chooses moves, and no set of ops is re-scheduled.
  filter: no network chooses moves; sets of ops are still re-scheduled.
  rescheduling: no set of ops is re-scheduled; the network still chooses moves.
  coordinates: there are no moves by coordinates, no anchor `structured`, and no
    coarse graph.
  multilevel: a large graph is not searched as a coarse graph first.
  parts: in the coarse graph whole layers move, and parts of layers do not.
  priorities: the search prices FIFO steps, and adds control edges at the end.
  compound: every move moves one set of ops.
  anchors: the search begins with single devices and blocks of the
    topological order.
  policy: `gdp_policy` proposes nothing.
  memory_repair: no repair of placements that exceed a memory.
  packing: no branch and bound that packs memories.
  search: the best of the anchors is the result; the policy proposes nothing.

Without `memory_repair` or `packing`, the anchors do not use it either.
--levers=parts,compound tries only these.

With --json the program prints a list of {"task", "seed", "all_s", "network_s",
...}: simulated steps with all levers, and without the named lever. Otherwise it
prints a table: the step with all levers, and the steps without a lever over
this step. Rows have geometric means over seeds. The last rows have the
geometric mean over tasks, and the least and the most of any seed.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import math
import statistics
import sys
import time
from typing import Any, Iterator, Sequence

import numpy as np

from benchmarks import tables
from gdp_grappler import progress
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.ordering import control_edges
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.placers import annealing_placer
from gdp_grappler.placers import default_placer
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.policy import move_policy
from gdp_grappler.placers.search import coarse_problem
from gdp_grappler.placers.search import multilevel
from gdp_grappler.placers.search import search_budget
from gdp_grappler.placers.search import search_config
from gdp_grappler.placers.search import staged_search
from gdp_grappler.placers.search.edges import edge_selection
from gdp_grappler.placers.search.moves import move_filter
from gdp_grappler.placers.search.moves import moves
from gdp_grappler.placers.search.moves import rescheduling
from gdp_grappler.placers.search.moves import shipped_moves
from gdp_grappler.problems import reading

_TITLE = 'Levers'
_LOOSE = tuple(
    kind for kind in moves.Moves.kinds if not kind.startswith('coordinate'))
_COORDINATES = 'structured'
_POLICY = default_placer.MOVES
_Row = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class _Levers:
  """Parts of the search that are on.

  Attributes:
    config: The numbers of the search.
    filter: How moves are chosen; None prices all moves that are drawn.
    coordinates: Whether coordinates make anchors, moves and a coarse graph.
    priorities: Whether the search prices placements by priorities.
    anchors: Whether the search begins with anchors.
    policy: Whether `gdp_policy` proposes starts.
    search: Whether there is a search at all.
  """

  config: search_config.SearchConfig = search_config.DEFAULT
  filter: move_filter.FilterConfig | None = move_filter.FilterConfig()
  coordinates: bool = True
  priorities: bool = True
  anchors: bool = True
  policy: bool = True
  search: bool = True


def _without(part: str, **fields: Any) -> _Levers:
  """Returns all levers, with other fields in a part of the config."""
  config = search_config.DEFAULT
  own = dataclasses.replace(getattr(config, part), **fields)
  return _Levers(dataclasses.replace(config, **{part: own}))


_WAYS = {
    'all':
        _Levers(),
    'network':
        _Levers(filter=None),
    'filter':
        _Levers(filter=move_filter.FilterConfig(draws=1)),
    'rescheduling':
        _Levers(filter=move_filter.FilterConfig(
            rescheduling=rescheduling.ReschedulingConfig(share=0.))),
    'coordinates':
        _Levers(coordinates=False),
    'multilevel':
        _without('coarse', least_s=math.inf),
    'parts':
        _without('coarse', parts_least=1.),
    'priorities':
        _Levers(priorities=False),
    'compound':
        _without('annealing', compound=0.),
    'anchors':
        _Levers(anchors=False),
    'policy':
        _Levers(policy=False),
    'memory_repair':
        _without('fit', repairs=False),
    'packing':
        _without('fit', packs=False),
    'search':
        _Levers(policy=False, search=False),
}
_NAMES = tuple(name for name in _WAYS if name != 'all')


def _rows(task: str, names: Sequence[str], seconds: float,
          seeds: int) -> list[_Row]:
  """Returns a row per seed: with all levers, and without each named one."""
  ways = {name: _WAYS[name] for name in ('all', *names)}
  step = reading.read_task(task, progress.doing)
  simulator = step.simulator()
  problem = dataclasses.replace(step.problem(simulator), simulator=simulator)
  proposed = {
      fit: _proposed(problem, fit)
      for fit in {levers.config.fit for levers in ways.values()}
  }
  rows = []
  for seed in range(seeds):
    row: _Row = {'task': task, 'seed': seed}
    for name, levers in ways.items():
      with _by_default(levers.config.fit):
        found = _found(dataclasses.replace(problem, seed=seed),
                       proposed[levers.config.fit], levers, seconds,
                       np.random.default_rng(seed))
      row[f'{name}_s'] = _step_s(problem, simulator, found)
    rows.append(row)
  return rows


@contextlib.contextmanager
def _by_default(fit: search_config.FitConfig) -> Iterator[None]:
  """Makes placers without a config fit memories by these numbers."""
  stock = search_config.DEFAULT
  search_config.DEFAULT = dataclasses.replace(stock, fit=fit)
  try:
    yield
  finally:
    search_config.DEFAULT = stock


def _proposed(problem: placer_lib.Problem,
              fit: search_config.FitConfig) -> dict[str, np.ndarray]:
  """Proposals int [S, G] by source, which fit memories by a config."""
  with _by_default(fit):
    return annealing_placer.starting_points(problem, default_placer.ANCHORS,
                                            np.random.default_rng(0))


def _found(problem: placer_lib.Problem, proposed: dict[str, np.ndarray],
           levers: _Levers, seconds: float,
           rng: np.random.Generator) -> tuple[placement_lib.Placement, ...]:
  """Returns the placements that a search finds with the levers that are on."""
  begin_s = time.process_time()
  starts = _starts(problem, proposed, levers)
  if not levers.search:
    return tuple(
        placement_lib.from_groups(problem.graph, row, problem.cluster)
        for row in starts)
  drawer = moves.Moves(problem,
                       moves.Moves.kinds if levers.coordinates else _LOOSE)
  coarse = _coarse(problem, levers, seconds)
  if levers.policy:
    own_s = seconds * move_policy.time_share(
        False, coarse is not None, move_policy.is_short(problem, seconds))
    asked = move_policy.before_search(problem, seconds, own_s,
                                      time.process_time, drawer, starts)
    if asked is not None:
      starts = _starts(problem, {**proposed, _POLICY: asked.devices}, levers)
  further = []
  if coarse is not None:
    own_s = levers.config.coarse.share * _left_s(seconds, begin_s)
    coarse_result = multilevel.search(coarse, starts, rng, _budget(own_s),
                                      functools.partial(_model, levers))
    further = [coarse_result.rows]
  budget = _budget(_left_s(seconds, begin_s))
  if not levers.priorities:
    problem = dataclasses.replace(problem, may_add_edges=False)
  return staged_search.search(problem, starts, rng, budget,
                              functools.partial(_model, levers), drawer,
                              further, levers.config)


def _left_s(seconds: float, begin_s: float) -> float:
  return max(seconds - (time.process_time() - begin_s), 0.)


def _coarse(problem: placer_lib.Problem, levers: _Levers,
            seconds: float) -> coarse_problem.CoarseProblem | None:
  """The coarse problem, if the levers search one; else None."""
  if not (levers.coordinates and levers.priorities):
    return None
  return multilevel.coarsened(problem, levers.config.coarse.share * seconds,
                              levers.config)


def _budget(seconds: float) -> search_budget.SearchBudget:
  return search_budget.SearchBudget(sys.maxsize, seconds,
                                    clock=time.process_time)


def _starts(problem: placer_lib.Problem, proposed: dict[str, np.ndarray],
            levers: _Levers) -> np.ndarray:
  """int [S, G], the best first."""
  wanted = [
      rows for name, rows in proposed.items()
      if (levers.anchors or name not in default_placer.ANCHORS) and
      (levers.coordinates or name != _COORDINATES)
  ]
  rows = np.unique(np.concatenate(wanted), axis=0)
  prices = problem.evaluator.price_groups(problem.graph, rows)
  return rows[prices.ranking()[:levers.config.priorities.starts]]


def _model(levers: _Levers,
           problem: placer_lib.Problem) -> move_filter.MoveFilter | None:
  if levers.filter is None:
    return None
  return move_filter.MoveFilter(problem, shipped_moves.network(), levers.filter)


def _step_s(problem: placer_lib.Problem, simulator: simulator_lib.Simulator,
            placements: Sequence[placement_lib.Placement]) -> float:
  """Seconds of the best placement, with the control edges that pay."""
  choice = edge_selection.best(problem, placements, simulator,
                               lambda _: control_edges.OrderConfig())
  if choice.order is not None:
    return choice.order.with_edges_s
  return simulator.evaluate(problem.graph, choice.placement).step_time_s


def _table(found: Sequence[Sequence[_Row]],
           names: Sequence[str]) -> tables.Table:
  rows = [row for of_task in found for row in of_task]
  cells = [[
      of_task[0]['task'],
      tables.milliseconds(
          statistics.geometric_mean(row['all_s'] for row in of_task)),
      *(f'{statistics.geometric_mean(_ratios(of_task, name)):.3f}'
        for name in names)
  ] for of_task in found]
  for title, mean in (('geometric mean', statistics.geometric_mean),
                      ('least', min), ('most', max)):
    cells.append(
        [title, '', *(f'{mean(_ratios(rows, name)):.3f}' for name in names)])
  return tables.Table(
      'steps simulated, over that of all levers; seconds of '
      'the processor', ('task', 'all', *(f'no {name}' for name in names)),
      cells, rows)


def _ratios(rows: Sequence[_Row], name: str) -> list[float]:
  return [row[f'{name}_s'] / row['all_s'] for row in rows]


def _known(text: str) -> tuple[str, ...]:
  names = tuple(text.split(','))
  if unknown := set(names) - set(_NAMES):
    raise argparse.ArgumentTypeError(
        f'there is no lever "{min(unknown)}". Levers: {", ".join(_NAMES)}')
  return names


main = tables.program_of_tasks(
    'levers', __doc__, _TITLE, 'searching',
    lambda task, given: _rows(task, given.levers, given.seconds, given.seeds),
    lambda found, given: _table(found, given.levers),
    tables.option('--levers', type=_known,
                  default=','.join(_NAMES)), seconds=10.)

if __name__ == '__main__':
  sys.exit(main())
