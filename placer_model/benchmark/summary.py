"""The text that a finished run prints."""

from __future__ import annotations

import collections
from typing import Any

import rich.console

from gdp_grappler.placers import placer_table
from gdp_grappler.reports import tables as tables_lib
from placer_model.benchmark import figures
from placer_model.benchmark import settings as settings_lib
from placer_model.benchmark import tables

# Columns of `tables.means`, and their names on a terminal.
_SHOWN = {
    'placer': 'placer', 'tasks': 'tasks', 'OOM': 'OOM', 'no placement': 'none',
    'best on': 'best', 'speed-up over human (tasks)': 'vs human',
    'speed-up over HDP (tasks)': 'vs HDP', 'step / bound (tasks)': '/ bound'
}


def show(results: dict[str, Any], out_dir: str,
         console: rich.console.Console) -> None:
  """Prints the means and the output folder.

  Args:
    results: Result of `report.results`.
    out_dir: Output folder, as the user named it.
    console: Console to print to.
  """
  settings = settings_lib.Settings.from_json(results['settings'])
  kind = settings.reward
  small = ', small variants' if settings.quick else ''
  rounding = ', may round' if settings.may_round else ''
  means = tables.means(results['tasks'])
  columns = [means.head.index(head) for head in _SHOWN]
  rows = [tuple(_SHOWN.values())]
  kind_column = means.head.index('kind')
  for row in means.rows:
    # A mean has the number of its tasks only if the column "tasks" has another
    # number, because a terminal is narrow.
    every = f' ({row[means.head.index("tasks")]})'
    name, *numbers = (row[column].removesuffix(every) for column in columns)
    star = '*' * (row[kind_column] == placer_table.Kind.PORTFOLIO)
    rows.append((f'{name}{star}', *numbers))
  shown = tables_lib.titled(
      f'Tasks: {len(results["tasks"])} ({kind}{small}{rounding}); geometric '
      'means', rows,
      '*: portfolio, the best of many proposals; OOM: tasks whose memory it '
      'exceeds; none: tasks without a placement; best: tasks on which nobody '
      'is faster; human: the expert; vs: step time of the other / of this '
      'placer, first in, first out; / bound: step time / lower bound; (n): of '
      'n tasks only. All words: gdp glossary.')
  for text in (shown, f'All tables and pictures: {out_dir}/README.md',
               _next_steps(results)):
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _next_steps(results: dict[str, Any]) -> str:
  """Returns a text on what to do with the results."""
  every = [task['cells'] for task in results['tasks']]
  if not any(map(figures.best, every)):
    return 'Next: gdp doctor, which says what does not work here.'
  leaders = collections.Counter(
      figures.best(cells, filter(_places_any_graph, cells)) for cells in every)
  leaders.pop(None, None)
  chosen = ''.join(f' --placer={name}' for name, _ in leaders.most_common(1))
  return (f'Next: gdp place GRAPH --cluster=CLUSTER{chosen} '
          '--output=plan.json, with a graph and a cluster of yours')


def _places_any_graph(name: str) -> bool:
  """Whether the placer is in this version and needs no human expert."""
  entry = placer_table.table().get(name)
  return entry is not None and placer_table.Need.EXPERT not in entry.needs
