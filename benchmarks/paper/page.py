"""Results of a part as a page of Markdown, and curves over seconds."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from matplotlib import figure as figure_lib

from benchmarks.paper import parts as parts_lib
from gdp_grappler.placers import registry
from gdp_grappler.reports import tables
from placer_model.benchmark import figures

# Of a task of gdp_bench's results.
Task = Mapping[str, Any]
Table = list[tuple[str, ...]]
_OF = {parts_lib.STEP: figures.ratio, parts_lib.SEARCH: figures.search_ratio}
_PUBLISHED = 'published'
_MEAN = 'geometric mean'


def section(part: parts_lib.Part, tasks: Sequence[Task], command: str,
            seconds: float | None) -> str:
  """A part as a section.

  Args:
    part: Which.
    tasks: Of the results, with cells of all its placers that apply.
    command: That makes it anew.
    seconds: That each search had; None if it ended by itself.
  """
  had = ('Searches ended by themselves.'
         if seconds is None else f'Each search had {seconds:g} s.')
  failed = [line for task in tasks for line in figures.failures(task)]
  notes = '\n'.join(f'* {line}' for line in dict.fromkeys(failed))
  return '\n\n'.join(
      filter(None,
             (f'## {part.title}', part.said, f'Made by `{command}`. {had}',
              tables.as_markdown(table(part, tasks)), notes)))


def table(part: parts_lib.Part, tasks: Sequence[Task]) -> Table:
  """A row per task, and the geometric means of ratios.

  Where a paper has the same ratio for a task, it stands in a column of its own;
  its mean is over the tasks that have both.
  """
  columns: list[tuple[str, list[float | None]]] = []
  means: list[str] = []
  for ratio in part.ratios:
    ours = [_ratio(ratio, task) for task in tasks]
    columns.append((ratio.title, ours))
    means.append(_mean(ours))
    if ratio.published:
      known = dict(ratio.published)
      theirs = [known.get(task['name']) for task in tasks]
      columns.append((_PUBLISHED, theirs))
      means.append(_mean([v for v, own in zip(theirs, ours) if own is not None
                         ]))
  rows = [('task', *part.placers, *(title for title, _ in columns))]
  for row, task in enumerate(tasks):
    rows.append(
        (task['name'],
         *(figures.step(task['cells'].get(name)) for name in part.placers),
         *(figures.times(values[row]) for _, values in columns)))
  rows.append((_MEAN, *[''] * len(part.placers), *means))
  return rows


def curve_table(part: parts_lib.Part, found: Mapping[float,
                                                     Sequence[Task]]) -> Table:
  """Geometric means over tasks, a row per placer, a column per seconds.

  Args:
    part: Which; the last of its placers is the one in question.
    found: Results by the seconds that each search had.

  Returns:
    Steps of each placer over those of the last.
  """
  *others, ours = part.placers
  rows = [('placer / ' + ours, *(f'{seconds:g} s' for seconds in found))]
  for other in others:
    ratio = parts_lib.Ratio('', other, ours)
    rows.append((other, *(_mean([_ratio(ratio, task) for task in tasks])
                          for tasks in found.values())))
  return rows


def curve_section(part: parts_lib.Part, found: Mapping[float, Sequence[Task]],
                  command: str, picture: str) -> str:
  """A part of several numbers of seconds; arguments as above.

  Args:
    part: Which.
    found: Results by seconds.
    command: That makes it anew.
    picture: File of `drawn`, beside the page.
  """
  return '\n\n'.join([
      f'## {part.title}', f'Made by `{command}`. Steps over those of '
      f'`{part.placers[-1]}`, which had the same seconds: geometric means over '
      'the tasks on which both run, and of how many.',
      tables.as_markdown(curve_table(part, found)),
      f'![Steps over seconds of search]({picture})'
  ])


def drawn(part: parts_lib.Part,
          found: Mapping[float, Sequence[Task]]) -> figure_lib.Figure:
  """A panel per task, a curve per placer, steps over seconds."""
  names = [task['name'] for task in next(iter(found.values()))]
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
                for seconds, tasks in found.items()
                if figures.valid(cell := tasks[row]['cells'].get(placer))]
      if points:
        axis.plot(*zip(*points), marker='.', label=placer,
                  color=registry.get(placer).color)
    axis.set(title=name, xscale='log', xlabel='seconds of search',
             ylabel='step, ms')
  figure.legend(*axes[0].get_legend_handles_labels(),
                loc='outside lower center', ncols=len(part.placers))
  return figure


def _ratio(ratio: parts_lib.Ratio, task: Task) -> float | None:
  cells = task['cells']
  return _OF[ratio.figure](cells.get(ratio.other), cells.get(ratio.ours))


def _mean(values: Sequence[float | None]) -> str:
  mean, count = figures.geomean(values)
  return figures.NONE if mean is None else f'{figures.times(mean)} ({count})'
