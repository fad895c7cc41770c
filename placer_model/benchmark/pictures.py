"""Bars relative to the human expert, and curves of searches."""

from __future__ import annotations

import pathlib
from typing import Any, Mapping, Sequence

import matplotlib
from matplotlib import figure as figure_lib
from matplotlib import ticker
import numpy as np

from gdp_grappler.placers import registry
from placer_model.benchmark import figures
from placer_model.benchmark import placer_sets
from placer_model.benchmark import records

_COLUMNS = 4  # Charts side by side.
_WIDE = 20.  # An axis with a larger ratio of its ends is logarithmic.
_FARTHEST = 4.  # Longer bars are cut here; a number beside them says how long.
_THICK = .75  # Thickness of a bar, as a share of its row.
Task = Mapping[str, Any]


def draw_all(folder: records.Folder, tasks: Sequence[Task],
             kind: str) -> list[pathlib.Path]:
  """Draws bars and curves; returns all pictures of the folder.

  Args:
    folder: Output folder.
    tasks: Tasks of the results.
    kind: Kind of step times for titles, one of `rewards.ALL`.
  """
  found = [(folder.picture('bars'), bars(tasks, kind))]
  for axis, name in ((0, 'evaluations'), (1, 'seconds')):
    found.append(
        (folder.picture(f'curves_{name}'), curves(tasks, axis, name, kind)))
  result = []
  for path, figure in found:
    if figure is None:
      path.unlink(missing_ok=True)
      continue
    save(path, figure)
    result.append(path)
  charts = [folder.chart(task['file_name']) for task in tasks]
  return result + [path for path in charts if path.exists()]


def save(path: pathlib.Path, figure: figure_lib.Figure) -> None:
  """Writes a PNG without the date, so that equal figures give equal files."""
  path.parent.mkdir(parents=True, exist_ok=True)
  with matplotlib.rc_context({'path.simplify': True}):
    figure.savefig(path, dpi=110, metadata={'Software': None})


def bars(tasks: Sequence[Task], kind: str) -> figure_lib.Figure | None:
  """Returns a panel per task with a bar per placer; None if none runs."""
  shown = [task for task in tasks if figures.best(task['cells'])]
  if not shown:
    return None
  most = max(len(task['cells']) for task in shown)
  figure, panels = _panels(len(shown), .9 + .19 * most)
  for panel, task in zip(panels, shown):
    _bars_of(panel, task)
  figure.suptitle(
      f'Step time / human expert ({kind}, first in, first out); shorter is '
      'faster; bold: the fastest; broken bars are longer', fontsize=10)
  return figure


def curves(tasks: Sequence[Task], axis: int, name: str,
           kind: str) -> figure_lib.Figure | None:
  """Returns a panel per task that has a search; None if there is none.

  Args:
    tasks: Tasks of the results.
    axis: Column of the curve for the x axis: 0 evaluations, 1 seconds.
    name: Name of that axis.
    kind: One of `rewards.ALL`.
  """
  shown = [task for task in tasks if _searches(task)]
  if not shown:
    return None
  figure, panels = _panels(len(shown), 2.6)
  for panel, task in zip(panels, shown):
    _curves_of(panel, task, axis, name)
  figure.suptitle(
      f'Best step time so far over {name} ({kind}); dotted: human '
      'expert', fontsize=10)
  return figure


def _panels(count: int, height: float) -> tuple[Any, np.ndarray]:
  """Returns a figure and `count` axes in rows of up to `_COLUMNS`."""
  columns = min(_COLUMNS, count)
  rows = -(-count // columns)
  figure = figure_lib.Figure((max(8., 1. + 3.6 * columns), .6 + height * rows),
                             layout='constrained')
  axes = np.ravel(figure.subplots(rows, columns, squeeze=False))
  for unused in axes[count:]:
    unused.set_axis_off()
  return figure, axes[:count]


def _bars_of(panel: Any, task: Mapping[str, Any]) -> None:
  cells = task['cells']
  leader = figures.best(cells)
  human = cells.get(registry.EXPERT)
  unit = human if figures.valid(human) else cells[leader]
  names = list(cells)
  for row, name in enumerate(names):
    value = figures.ratio(cells[name], unit)
    if value is None:
      _write(panel, .03, row, figures.step(cells[name]), color='#b2182b')
      continue
    panel.barh(row, min(value, _FARTHEST), height=_THICK,
               color=placer_sets.color(name))
    if value > _FARTHEST:
      _break_bar(panel, row)
    _write(panel,
           min(value, _FARTHEST) + .04, row, f'{value:.2f}',
           fontweight='bold' if figures.is_best(cells, name) else 'normal')
  panel.axvline(1., color='black', linewidth=.7)
  if task['lower_bound_s']:
    panel.axvline(task['lower_bound_s'] / unit['step_time_s'], color='black',
                  linewidth=.7, linestyle=':')
  panel.set(xlim=(0, _FARTHEST + .6), ylim=(len(names) - .4, -.6))
  panel.set_yticks(range(len(names)), names, fontsize=7)
  panel.tick_params(axis='x', labelsize=7)
  of = 'human' if unit is human else f'no human, {leader}'
  panel.set_title(
      f'{task["name"]}\n1 = {of}: {unit["step_time_s"]:.4g} s; '
      'dotted: bound', fontsize=7.5)


def _write(panel: Any, x: float, row: int, text: str, **style: Any) -> None:
  """Writes text beside a bar, on a ground that hides lines."""
  panel.text(x, row, text, va='center', fontsize=7, zorder=5,
             bbox={'facecolor': 'white', 'edgecolor': 'none',
                   'pad': .4}, **style)


def _break_bar(panel: Any, row: int) -> None:
  """Draws two slanted gaps near the end of a bar that is cut."""
  for x in (_FARTHEST - .45, _FARTHEST - .3):
    panel.plot((x - .06, x + .06), (row + .55 * _THICK, row - .55 * _THICK),
               color='white', linewidth=2, zorder=3)


def _searches(task: Mapping[str, Any]) -> dict[str, np.ndarray]:
  """Returns curves [C, 3] of placers whose search improved its first price."""
  return {
      name: np.array(record['curve'], float)
      for name, record in task['cells'].items()
      if figures.has_figures(record) and len(record['curve']) > 1
  }


def _curves_of(panel: Any, task: Mapping[str, Any], axis: int,
               name: str) -> None:
  found = _searches(task)
  last = max(curve[-1, axis] for curve in found.values())
  for placer, curve in found.items():
    # A search continues after its last improvement.
    record = task['cells'][placer]
    end = record['evaluations'] if axis == 0 else record['seconds']
    last = max(last, end)
    along = np.append(curve[:, axis], max(end, curve[-1, axis]))
    panel.step(np.maximum(along, 1e-3 if axis else 1),
               np.append(curve[:, 2], curve[-1, 2]), where='post',
               linewidth=1.2, label=placer, color=placer_sets.color(placer))
  human = task['cells'].get(registry.EXPERT)
  if figures.valid(human):
    panel.axhline(human['step_time_s'], color='black', linewidth=.8,
                  linestyle=':')
  panel.set_xscale('log')
  low, high = panel.get_ylim()
  if high > _WIDE * max(low, 1e-12):
    panel.set_yscale('log')
    panel.yaxis.set_minor_formatter(ticker.NullFormatter())
  panel.yaxis.set_major_formatter(ticker.FormatStrFormatter('%.4g'))
  panel.tick_params(labelsize=7, which='both')
  panel.set_title(task['name'], fontsize=8)
  panel.set_xlabel(name, fontsize=7)
  panel.set_ylabel('s per step', fontsize=7)
  panel.legend(fontsize=6)
