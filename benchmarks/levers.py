"""Steps of the default placer if one of its parts (levers) is off.

Run it from the repository:

  python -m benchmarks.levers rnnlm-2@2xP100 amoebanet@4xP100

The default placer (`gdp`) places each task with all levers ('all'), and without
each. --seconds is the processor time of a placement. The placements that it
proposes get control edges if they are predicted to shorten the step. The
levers:

  network: no network chooses moves.
  short: no short annealings run before the long one.
  coordinates: the positions of ops in layers and time steps are unknown. So
    there are no moves by coordinates, no maps by coordinates, no anchor
    `structured`, and no coarse graph.
  multilevel: a large graph is not searched as a coarse graph first.
  parts: in the coarse graph whole layers move, and parts of layers do not.
  priorities: the search prices FIFO steps, and adds control edges at the end.
  compound: every move moves one set of ops.
  anchors: no other placer proposes starts.
  policy: `gdp_policy` proposes nothing.
  memory_repair: no repair of placements that exceed a memory.
  packing: no branch and bound that packs memories.
  search: the best of the anchors is the result (`best_of`).

--levers=parts,compound tries only these.

With --json the program prints a list of {"task", "seed", "all_s", "network_s",
...}: simulated steps with all levers, and without the named lever. Otherwise it
prints a table: the step with all levers, and the steps without a lever over
this step. Rows have geometric means over seeds. The last rows have the
geometric mean over tasks, the largest mean of a task, and the least and the
most of any seed.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import math
import sys
from typing import Any, Callable, Iterator, Sequence

import numpy as np

from benchmarks import tables
from gdp_grappler import progress
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.ordering import control_edges
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.graph.structure import coordinates
from gdp_grappler.placers import best_of
from gdp_grappler.placers import default_placer
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import registry
from gdp_grappler.placers.search import search_config
from gdp_grappler.placers.search.edges import edge_selection
from gdp_grappler.problems import reading
from placer_model.benchmark import clocks

_TITLE = 'Levers'
_Row = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class _Levers:
  """Parts of the default placer that are on.

  Attributes:
    placer: Makes the placer.
    config: The numbers of the search.
    coordinates: Whether the positions of ops in layers and steps are known.
    priorities: Whether the search prices placements by priorities.
  """

  placer: Callable[[], placer_lib.Placer] = default_placer.DefaultPlacer
  config: search_config.SearchConfig = search_config.DEFAULT
  coordinates: bool = True
  priorities: bool = True


def _without(part: str, **fields: Any) -> _Levers:
  """Returns all levers, with other fields in a part of the config."""
  config = search_config.DEFAULT
  own = dataclasses.replace(getattr(config, part), **fields)
  return _Levers(config=dataclasses.replace(config, **{part: own}))


def _placing(**arguments: Any) -> _Levers:
  """Returns all levers, with other arguments of the default placer."""
  return _Levers(functools.partial(default_placer.DefaultPlacer, **arguments))


_WAYS = {
    'all': _Levers(),
    'network': _placing(asks_network=False),
    'short': _without('short', starts=1),
    'coordinates': _Levers(coordinates=False),
    'multilevel': _without('coarse', least_s=math.inf),
    'parts': _without('coarse', layers_until=1.),
    'priorities': _Levers(priorities=False),
    'compound': _without('annealing', compound=0.),
    'anchors': _placing(anchors=()),
    'policy': _placing(asks_moves=False),
    'memory_repair': _without('fit', repairs=False),
    'packing': _without('fit', packs=False),
    'search': _Levers(functools.partial(registry.create, 'best_of')),
}
_NAMES = tuple(name for name in _WAYS if name != 'all')


def _rows(task: str, names: Sequence[str], seconds: float,
          seeds: int) -> list[_Row]:
  """Returns a row per seed: with all levers, and without each named one."""
  step = reading.read_task(task, progress.doing)
  simulator = step.simulator()
  problem = dataclasses.replace(step.problem(simulator), simulator=simulator,
                                time_budget_s=seconds, clock=clocks.processor_s)
  rows = []
  for seed in range(seeds):
    row: _Row = {'task': task, 'seed': seed}
    for name in ('all', *names):
      progress.doing(f'{name}, seed {seed}')
      found = _found(dataclasses.replace(problem, seed=seed), _WAYS[name])
      row[f'{name}_s'] = step_s(problem, simulator, found)
    rows.append(row)
  return rows


def _found(problem: placer_lib.Problem,
           levers: _Levers) -> tuple[placement_lib.Placement, ...]:
  """Returns the placements that are proposed with the levers that are on."""
  graph = problem.graph
  values = graph.coordinates
  if not levers.coordinates:
    values = np.full((graph.num_groups, len(coordinates.NAMES)), -1, np.int32)
  # Each search reads the structure of the graph anew.
  problem = dataclasses.replace(
      problem, graph=graph.replace(coordinates=values),
      may_add_edges=problem.may_add_edges and levers.priorities)
  with _by_default(levers.config):
    return best_of.proposals_of(levers.placer(), problem)


@contextlib.contextmanager
def _by_default(config: search_config.SearchConfig) -> Iterator[None]:
  """Makes this config the default of all placers while the context is open."""
  stock = search_config.DEFAULT
  search_config.DEFAULT = config
  try:
    yield
  finally:
    search_config.DEFAULT = stock


def step_s(problem: placer_lib.Problem, simulator: simulator_lib.Simulator,
           placements: Sequence[placement_lib.Placement]) -> float:
  """Seconds of the best placement, with control edges if they shorten it.

  They are infinite if the placement exceeds a memory.

  Args:
    problem: The problem; its evaluator chooses the best placement.
    simulator: Simulates steps.
    placements: At least one placement.
  """
  choice = edge_selection.best(problem, placements, simulator,
                               lambda _: control_edges.OrderConfig())
  evaluated = simulator.evaluate(problem.graph, choice.placement)
  if not evaluated.valid:
    return math.inf
  if choice.order is not None:
    return choice.order.with_edges_s
  return evaluated.step_time_s


def _table(found: Sequence[Sequence[_Row]],
           names: Sequence[str]) -> tables.Table:
  rows = [row for of_task in found for row in of_task]
  cells = [[
      of_task[0]['task'],
      tables.milliseconds(tables.mean(row['all_s'] for row in of_task)),
      *(tables.ratio(tables.mean(_ratios(of_task, name))) for name in names)
  ] for of_task in found]
  best = [
      np.max([tables.mean(_ratios(of_task, name)) for of_task in found])
      for name in names
  ]
  for title, summary in (('geometric mean', tables.mean), ('least', np.min),
                         ('most', np.max)):
    cells.append([
        title, '',
        *(tables.ratio(summary(_ratios(rows, name))) for name in names)
    ])
  cells.insert(-2, ['best task', '', *map(tables.ratio, best)])
  return tables.Table(
      'steps simulated, over that of all levers; seconds of '
      'the processor', ('task', 'all', *(f'no {name}' for name in names)),
      cells, rows)


def _ratios(rows: Sequence[_Row], name: str) -> list[float]:
  return [row[f'{name}_s'] / row['all_s'] for row in rows]


def _known(text: str) -> tuple[str, ...]:
  names = tables.names(text)
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
