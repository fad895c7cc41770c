"""Results of a part as a page of Markdown."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Sequence

from benchmarks.paper import columns as columns_lib
from benchmarks.paper import figures as figures_lib
from gdp_grappler.reports import tables
from placer_model.benchmark import figures

# A task in the results of gdp_bench.
Task = Mapping[str, Any]
# [S][R], the tasks of each seed.
Found = Sequence[Sequence[Task]]
Table = list[tuple[str, ...]]
_PUBLISHED = 'published'
_MEAN = 'geometric mean'


def section(part: columns_lib.Part, found: Found, command: str,
            seconds: float) -> str:
  """Returns a part as a section: steps, seconds of searches, ratios.

  Args:
    part: The part.
    found: Tasks with the cells of all columns that have a cell for the task.
    command: The command that makes the section.
    seconds: Time limit of each search, in seconds.
  """
  failed = [
      line for tasks in found for task in tasks
      for line in figures.failures(task)
  ]
  notes = '\n'.join(f'* {line}' for line in dict.fromkeys(failed))
  return '\n\n'.join(
      filter(
          None,
          (f'## {part.title}', part.said, f'Made by `{command}`. Each search '
           f'had {seconds:g} s.', '### Steps',
           tables.as_markdown(steps(part, found)),
           *(('### Seconds of search',
              tables.as_markdown(searches(part, found))) if part.searches else
             ()),
           *(('### Ratios',
              tables.as_markdown(ratios(part, found))) if part.ratios else
             ()), notes)))


def steps(part: columns_lib.Part, found: Found) -> Table:
  """Returns a table with a row per task and a column per placer."""
  return _table([column.name for column in part.columns], found,
                figures_lib.step)


def searches(part: columns_lib.Part, found: Found) -> Table:
  """Returns a table with a row per task and a column per search."""
  return _table(part.searches, found, figures_lib.search)


def _table(names: Sequence[str], found: Found,
           text: Callable[[figures_lib.Seeds, str], str]) -> Table:
  return [('task', *names), *((seeds[0]['name'], *(text(seeds, name)
                                                   for name in names))
                              for seeds in zip(*found))]


def ratios(part: columns_lib.Part, found: Found) -> Table:
  """Returns a table with a row per task, a column per ratio, and means.

  If a paper gives the ratio of a task, the published ratio has a column of its
  own. The mean of that column is over the tasks that have both ratios, or the
  mean that the paper's text gives.
  """
  names = [task['name'] for task in found[0]]
  heads, columns = ['task'], [[*names, _MEAN]]
  for ratio in part.ratios:
    ours = [figures_lib.ratios(ratio, seeds) for seeds in zip(*found)]
    heads.append(ratio.title)
    columns.append([*map(figures_lib.times, ours), figures_lib.mean(ours)])
    if ratio.published or ratio.published_mean:
      heads.append(_PUBLISHED)
      columns.append(_published(ratio, names, ours))
  return [tuple(heads), *zip(*columns)]


def _published(ratio: columns_lib.Ratio, names: Sequence[str],
               ours: Sequence[Sequence[float | None]]) -> list[str]:
  """The column of published ratios by task, and the mean."""
  known = dict(ratio.published)
  theirs = [known.get(name) for name in names]
  both = [[value] for value, own in zip(theirs, ours) if any(own)]
  mean = (f'{figures.times(ratio.published_mean)} (its text)'
          if ratio.published_mean else figures_lib.mean(both))
  return [*map(figures.times, theirs), mean]
