"""What a finished run prints."""

from __future__ import annotations

from typing import Any

import rich.console
import rich.table

from gdp_grappler.placers import entries
from placer_model.benchmark import tables

# Columns of `tables.means`: as they are called on a terminal, and which one
# names the rows.
_SHOWN = {
    'placer': ('placer', True), 'tasks': ('tasks', False),
    'OOM': ('OOM', False), 'no placement': ('none', False), 'best on':
        ('best', False), 'speed-up over human (tasks)': ('vs human', False),
    'speed-up over HDP (tasks)': ('vs HDP', False), 'step / bound (tasks)':
        ('/ bound', False)
}


def show(results: dict[str, Any], out_dir: str,
         console: rich.console.Console) -> None:
  """Prints the means and where everything is.

  Args:
    results: Of `report.results`.
    out_dir: As the user named it.
    console: Where to.
  """
  kind = results['settings']['reward']
  small = ', small variants' if results['settings']['quick'] else ''
  means = tables.means(results['tasks'])
  columns = [means.head.index(head) for head in _SHOWN]
  shown = rich.table.Table(
      title=f'Tasks: {len(results["tasks"])} ({kind}{small}); geometric means',
      caption='*: portfolio, the best of many proposals; vs: step time of the '
      'other / of this placer, first in, first out; / bound: step time / lower '
      'bound')
  for name, head in _SHOWN.values():
    shown.add_column(name, justify='left' if head else 'right', no_wrap=True)
  kind_column = means.head.index('kind')
  for row in means.rows:
    # A terminal has no room for how many tasks a mean is of.
    name, *numbers = (row[column].split(' (')[0] for column in columns)
    star = '*' * (row[kind_column] == entries.Kind.PORTFOLIO)
    shown.add_row(f'{name}{star}', *numbers)
  console.print(shown)
  console.print(f'All tables and pictures: {out_dir}/README.md',
                highlight=False, soft_wrap=True)
