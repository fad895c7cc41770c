"""Numbers of cells, and texts of numbers, for tables and pictures."""

from __future__ import annotations

import math
from typing import Any, Iterable, Mapping, TypeGuard

from placer_model.benchmark import cell as cell_lib

Record = Mapping[str, Any]
NONE = '-'
FIFO, ORDERED = 'step_time_s', 'ordered_step_time_s'


def valid(record: Record | None) -> TypeGuard[Record]:
  """Returns whether a cell has a valid step time."""
  return record is not None and record['status'] == cell_lib.OK


def has_figures(record: Record | None) -> bool:
  """Returns whether a cell has a placement, even one that does not fit."""
  return record is not None and record['status'] in (cell_lib.OK, cell_lib.OOM)


def ratio(other: Record | None, ours: Record | None) -> float | None:
  """Returns another placer's step time over ours; None unless both run.

  Two steps of length zero have the ratio 1. If only one is zero, there is no
  ratio.
  """
  if not (valid(other) and valid(ours)):
    return None
  times_s = other['step_time_s'], ours['step_time_s']
  if not all(times_s):
    return None if any(times_s) else 1.
  return times_s[0] / times_s[1]


def geomean(values: Iterable[float | None]) -> tuple[float | None, int]:
  """Returns the geometric mean of the known values, and their number.

  Zeros are left out, because a single zero makes the mean zero.
  """
  known = [value for value in values if value]
  if not known:
    return None, 0
  return math.exp(math.fsum(map(math.log, known)) / len(known)), len(known)


def why_not(task: Mapping[str, Any], placer: str) -> str:
  """Returns one line on why a cell has no figures.

  The line does not name the placer if all cells of the task failed for the same
  reason.

  Args:
    task: A task of the results.
    placer: Placer of the cell.
  """
  cells = task['cells']
  message = cells[placer]['message']
  same = all(r.get('message') == message for r in cells.values())
  who = '' if same and len(cells) > 1 else f', {placer}'
  return f'{task["name"]}{who}: {message}'


def failures(task: Mapping[str, Any]) -> list[str]:
  """Returns a line for each cell of a task that failed."""
  return [
      why_not(task, placer) for placer, record in task['cells'].items()
      if record['status'] == cell_lib.FAILED
  ]


def best(cells: Mapping[str, Record], names: Iterable[str] | None = None,
         key: str = FIFO) -> str | None:
  """Returns the placer with the shortest valid step, the first of equals.

  Args:
    cells: Records by placer.
    names: Placers to compare; by default all.
    key: Kind of step time, `FIFO` or `ORDERED`.
  """
  known = [
      n for n in (cells if names is None else names)
      if valid(cells.get(n)) and cells[n][key] is not None
  ]
  return min(known, key=lambda n: cells[n][key]) if known else None


def is_best(cells: Mapping[str, Record], name: str) -> bool:
  """Returns whether no placer is faster than this one."""
  leader = best(cells)
  lead = ratio(cells[name], None if leader is None else cells[leader])
  return lead is not None and lead <= 1 + 1e-9


def step(record: Record | None, key: str = FIFO) -> str:
  """Returns '0.1234 s', 'OOM +1.20 GiB', 'infeasible' or 'failed'."""
  if record is None:
    return NONE
  if not has_figures(record):
    return record['status']
  if record[key] is not None:
    return f'{record[key]:.4g} s'
  missing = max(record['missing_bytes'].values(), default=0)
  return f'OOM +{size(missing)}' if missing else 'OOM'


def times(value: float | None) -> str:
  """Returns '1.234x'."""
  return NONE if value is None else f'{value:.3g}x' if value >= 100 else (
      f'{value:.3f}x')


def size(count: int) -> str:
  """Returns '1.20 GiB'."""
  for unit, power in (('GiB', 30), ('MiB', 20), ('KiB', 10)):
    if abs(count) >= 1 << power:
      return f'{count / (1 << power):.2f} {unit}'
  return f'{count} B'
