"""Results of a part as a page of Markdown, and curves over seconds."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from matplotlib import figure as figure_lib

from benchmarks.paper import columns as columns_lib
from benchmarks.paper import figures as figures_lib
from gdp_grappler.placers import registry
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
  rows = [('task', *(column.name for column in part.columns))]
  for seeds in zip(*found):
    rows.append(
        (seeds[0]['name'],
         *(figures_lib.step(seeds, column.name) for column in part.columns)))
  return rows


def searches(part: columns_lib.Part, found: Found) -> Table:
  """Returns a table with a row per task and a column per search."""
  rows = [('task', *part.searches)]
  for seeds in zip(*found):
    rows.append((seeds[0]['name'],
                 *(figures_lib.search(seeds, name) for name in part.searches)))
  return rows


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


def curve_table(part: columns_lib.Part, found: Mapping[float, Found]) -> Table:
  """Returns geometric means over tasks of ratios to the last placer's steps.

  Args:
    part: The part. The last of its placers is compared with all others.
    found: Results by the time limit of searches, in seconds.

  Returns:
    A table with a row per placer and a column per time limit.
  """
  *others, ours = part.placers
  rows = [('placer / ' + ours, *(f'{seconds:g} s' for seconds in found))]
  for other in others:
    ratio = columns_lib.Ratio('', other, ours)
    rows.append((other, *(figures_lib.mean(
        [figures_lib.ratios(ratio, seeds) for seeds in zip(*tasks)])
                          for tasks in found.values())))
  return rows


def curve_section(part: columns_lib.Part, found: Mapping[float, Found],
                  command: str, picture: str) -> str:
  """Returns a part with several time limits as a section.

  Args:
    part: The part.
    found: Results by the time limit of searches, in seconds.
    command: The command that makes the section.
    picture: Name of the file with the picture `drawn`, beside the page.
  """
  return '\n\n'.join([
      f'## {part.title}', f'Made by `{command}`. Steps over those of '
      f'`{part.placers[-1]}`, which had the same seconds: geometric means over '
      'the tasks on which both run, and of how many.',
      tables.as_markdown(curve_table(part, found)),
      f'![Steps over seconds of search]({picture})'
  ])


def drawn(part: columns_lib.Part, found: Mapping[float,
                                                 Found]) -> figure_lib.Figure:
  """Draws steps over seconds: a panel per task, a curve per placer.

  The curves are of the first seed.
  """
  first = {seconds: tasks[0] for seconds, tasks in found.items()}
  names = [task['name'] for task in next(iter(first.values()))]
  columns = min(4, len(names))
  rows = -(-len(names) // columns)
  figure = figure_lib.Figure((3.2 * columns, .6 + 2.4 * rows),
                             layout='constrained')
  axes = figure.subplots(rows, columns, squeeze=False).ravel()
  for unused in axes[len(names):]:
    unused.set_axis_off()
  for row, (axis, name) in enumerate(zip(axes, names)):
    for placer in part.placers:
      points = [(seconds, cell['step_time_s'] * 1e3)
                for seconds, tasks in first.items()
                if figures.valid(cell := tasks[row]['cells'].get(placer))]
      if points:
        axis.plot(*zip(*points), marker='.', label=placer,
                  color=registry.get(placer).color)
    axis.set(title=name, xscale='log', xlabel='seconds of search',
             ylabel='step, ms')
  figure.legend(*axes[0].get_legend_handles_labels(),
                loc='outside lower center', ncols=len(part.placers))
  return figure


def _published(ratio: columns_lib.Ratio, names: Sequence[str],
               ours: Sequence[Sequence[float | None]]) -> list[str]:
  """The column of published ratios by task, and the mean."""
  known = dict(ratio.published)
  theirs = [known.get(name) for name in names]
  both = [[value] for value, own in zip(theirs, ours) if any(own)]
  mean = (f'{figures.times(ratio.published_mean)} (its text)'
          if ratio.published_mean else figures_lib.mean(both))
  return [*map(figures.times, theirs), mean]
