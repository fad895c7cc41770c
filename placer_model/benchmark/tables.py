"""A run's results as tables.

A table has a head and rows, which are texts for Markdown and plain numbers for
CSV. A ratio is the other placer's step time over ours, with ready ops first in,
first out.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import statistics
from typing import Any, Iterable, Mapping, Sequence

from gdp_grappler.placers import registry
from placer_model.benchmark import cell as cell_lib
from placer_model.benchmark import figures
from placer_model.benchmark import placer_sets

_HDP, _EXPERT = 'hdp', registry.EXPERT
# Columns of means, and the columns with the numbers of their tasks.
_OF_MEANS = {
    'speed-up over human (tasks)': 'tasks with human',
    'speed-up over HDP (tasks)': 'tasks with HDP',
    'step / bound (tasks)': 'tasks with bound',
    'slower than the best (tasks)': 'tasks with best'
}
Task = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Table:
  """Rows of texts, and the same rows as numbers.

  Attributes:
    head: [C], names of columns.
    rows: Rows of C texts each.
    numbers: Rows of C values each: the number or text of a cell; None for an
      empty one.
    footnotes: Footnotes, to which texts refer by number from 1.
    only_csv: Names of the last columns, which Markdown leaves out.
  """

  head: tuple[str, ...]
  rows: tuple[tuple[str, ...], ...]
  numbers: tuple[tuple[Any, ...], ...]
  footnotes: tuple[str, ...] = ()
  only_csv: tuple[str, ...] = ()

  def to_markdown(self) -> str:
    """Returns Markdown with numbers to the right; a sentence without rows."""
    if not self.rows:
      return 'None of the tasks of this run belongs here.\n'
    right = [
        any(isinstance(v, (int, float)) for v in column)
        for column in zip(*self.numbers)
    ]
    lines = [self.head, ['---:' if r else '---' for r in right], *self.rows]
    shown = len(self.head) - len(self.only_csv)
    text = ''.join(
        '| ' + ' | '.join(cell.replace('|', r'\|')
                          for cell in line[:shown]) + ' |\n' for line in lines)
    notes = [f'{i}. {note}\n' for i, note in enumerate(self.footnotes, 1)]
    return text + '\n' * bool(notes) + ''.join(notes)

  def to_csv(self) -> str:
    """Returns comma-separated values, one line per row."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator='\n')
    writer.writerow(self.head)
    writer.writerows(
        ['' if v is None else v for v in row] for row in self.numbers)
    return text.getvalue()


class _Builder:
  """Collects rows of (text, number) pairs, and footnotes."""

  def __init__(self, head: Sequence[str], only_csv: Sequence[str] = ()) -> None:
    self._head, self._only_csv = (*head, *only_csv), tuple(only_csv)
    self._rows: list[tuple[tuple[str, Any], ...]] = []
    self._notes: list[str] = []

  def add(self, cells: Iterable[tuple[str, Any]]) -> None:
    self._rows.append(tuple(cells))

  def step(self, task: Task, placer: str | None,
           key: str = 'step_time_s') -> tuple[str, Any]:
    """Returns a step time, or why there is none, with a footnote if needed."""
    record = task['cells'].get(placer)
    if placer is None or record is None:
      return figures.NONE, None
    text = figures.step(record, key)
    if not figures.has_figures(record):
      note = figures.why_not(task, placer)
      if note not in self._notes:
        self._notes.append(note)
      return f'{text} [{self._notes.index(note) + 1}]', None
    return text, record[key]

  def build(self) -> Table:
    return Table(
        self._head, tuple(tuple(text for text, _ in row) for row in self._rows),
        tuple(tuple(number for _, number in row) for row in self._rows),
        tuple(self._notes), self._only_csv)


def everything(tasks: Sequence[Task]) -> Table:
  """Returns a table with all figures and a row per cell."""
  builder = _Builder(('task', 'placer', 'kind', 'FIFO step', 'ordered step',
                      'speed-up over human', 'speed-up over HDP', 'lower bound',
                      'step / bound', 'fullest memory', 'peak memory',
                      'missing memory', 'cut tensors', 'cut bytes',
                      'evaluations', 'seconds', 'won by', 'status'))
  for task in tasks:
    for placer, record in task['cells'].items():
      builder.add([
          _text(task['name']),
          _text(placer),
          _text(placer_sets.kind(placer)), *_row(builder, task, placer, record)
      ])
  return builder.build()


def means(tasks: Sequence[Task]) -> Table:
  """Returns geometric means over tasks, with a row per placer."""
  builder = _Builder(('placer', 'kind', 'tasks', 'OOM', 'no placement',
                      'best on', *_OF_MEANS, 'median seconds'),
                     tuple(_OF_MEANS.values()))
  names = dict.fromkeys(name for task in tasks for name in task['cells'])
  for name in names:
    there = [task['cells'] for task in tasks if name in task['cells']]
    of = [cells[name] for cells in there]
    leaders = [figures.best(cells) for cells in there]
    of_means = [
        figures.geomean(values)
        for values in ((figures.ratio(c.get(_EXPERT), c[name]) for c in there),
                       (figures.ratio(c.get(_HDP), c[name]) for c in there),
                       (r.get('over_bound') for r in of),
                       (figures.ratio(c[name], c.get(leader))
                        for c, leader in zip(there, leaders)))
    ]
    builder.add([
        _text(name),
        _text(placer_sets.kind(name)),
        _count(len(of)),
        _count(sum(r['status'] == cell_lib.OOM for r in of)),
        _count(sum(not figures.has_figures(r) for r in of)),
        _count(sum(figures.is_best(cells, name) for cells in there)),
        *(_mean(mean, count) for mean, count in of_means),
        _median_seconds(of), *(_count(count) for _, count in of_means)
    ])
  return builder.build()


def _row(builder: _Builder, task: Task, placer: str,
         record: figures.Record) -> list[tuple[str, Any]]:
  """Returns the columns of a cell after its name."""
  cells = task['cells']
  if not figures.has_figures(record):
    blank = [_text(figures.NONE)] * 13
    return [builder.step(task, placer), *blank, _text(record['status'])]
  fullest = max(
      record['peak_bytes'], key=lambda device:
      (record['peak_bytes'][device] / record['capacity_bytes'][device]))
  missing = sum(record['missing_bytes'].values())
  return [
      builder.step(task, placer),
      builder.step(task, placer, 'ordered_step_time_s'),
      _times(figures.ratio(cells.get(_EXPERT), record)),
      _times(figures.ratio(cells.get(_HDP), record)),
      _seconds(record['lower_bound_s']),
      _times(record['over_bound']),
      _text(fullest),
      _size(record['peak_bytes'][fullest]),
      _size(missing) if missing else _text(figures.NONE),
      _count(record['cut_tensors']),
      _size(record['cut_bytes']),
      _count(record['evaluations']),
      (f'{record["seconds"]:.2f}', record['seconds']),
      _text(record['won_by'] or figures.NONE),
      _text(record['status'])
  ]


def _text(text: str) -> tuple[str, Any]:
  return text, text if text not in ('', figures.NONE) else None


def _count(value: int | None) -> tuple[str, Any]:
  return (figures.NONE if value is None else str(value)), value


def _times(value: float | None) -> tuple[str, Any]:
  return figures.times(value), value


def _seconds(value: float | None) -> tuple[str, Any]:
  return (figures.NONE if value is None else f'{value:.4g} s'), value


def _size(value: int) -> tuple[str, Any]:
  return figures.size(value), value


def _mean(mean: float | None, count: int) -> tuple[str, Any]:
  return (figures.NONE
          if mean is None else f'{figures.times(mean)} ({count})'), mean


def _median_seconds(records: Sequence[Mapping[str, Any]]) -> tuple[str, Any]:
  seconds = [r['seconds'] for r in records if 'seconds' in r]
  if not seconds:
    return figures.NONE, None
  middle = round(statistics.median(seconds), 5)
  return f'{middle:.2f}', middle
