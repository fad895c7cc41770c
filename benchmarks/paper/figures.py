"""Figures of cells over seeds, and their texts."""

from __future__ import annotations

import statistics
from typing import Any, Mapping, Sequence

from benchmarks.paper import columns as columns_lib
from placer_model.benchmark import figures

# The same task with each seed.
Seeds = Sequence[Mapping[str, Any]]
_Record = Mapping[str, Any]
# A search counts as finished once its step is at most this many times the
# shortest step that it finds.
_NEAR = 1.01


def seconds_to(record: _Record | None, step_s: float) -> float | None:
  """Seconds until a search was within 1 % of a step; None if it never was.

  Args:
    record: Record of the search.
    step_s: Seconds of the step, by the price that searches see.
  """
  if not figures.valid(record):
    return None
  return next(
      (at_s
       for _, at_s, found_s in record['curve'] if found_s <= _NEAR * step_s),
      None)


def seconds_to_best(record: _Record | None) -> float | None:
  """Seconds until a search was within 1 % of its own best."""
  best_s = _best_s(record)
  return None if best_s is None else seconds_to(record, best_s)


def ratios(ratio: columns_lib.Ratio, seeds: Seeds) -> list[float | None]:
  """The ratio of a task, by seed."""
  return [
      _ratio(ratio, task['cells'].get(ratio.other),
             task['cells'].get(ratio.ours)) for task in seeds
  ]


def step(seeds: Seeds, column: str) -> str:
  """The step of a column as '0.2768 s', with least and most over seeds."""
  records = [task['cells'].get(column) for task in seeds]
  known = [record for record in records if figures.valid(record)]
  if len(known) < len(records):
    return figures.step(next(r for r in records if not figures.valid(r)))
  return _spread([record['step_time_s'] for record in known], 's', '.4g')


def search(seeds: Seeds, column: str) -> str:
  """Seconds of a column's search until it was near its own best."""
  found = [seconds_to_best(task['cells'].get(column)) for task in seeds]
  known = [seconds for seconds in found if seconds is not None]
  return _spread(known, 's', '.2g') if known else figures.NONE


def times(values: Sequence[float | None]) -> str:
  """The mean as '1.234x', with the least and the most over seeds."""
  known = [value for value in values if value is not None]
  if len(known) < 2:
    return figures.times(known[0] if known else None)
  mean, _ = figures.geomean(known)
  return (f'{figures.times(mean)} ({figures.times(min(known))} to '
          f'{figures.times(max(known))})')


def mean(rows: Sequence[Sequence[float | None]]) -> str:
  """The geometric mean over tasks, and the number of tasks.

  Args:
    rows: [R][S], values by task and seed.
  """
  of_seeds = [figures.geomean(values) for values in zip(*rows)]
  count = max((count for _, count in of_seeds), default=0)
  if not count:
    return figures.NONE
  return f'{times([value for value, _ in of_seeds])} ({count})'


def _ratio(ratio: columns_lib.Ratio, other: _Record | None,
           ours: _Record | None) -> float | None:
  if ratio.figure == columns_lib.STEP:
    return figures.ratio(other, ours)
  their_s, best_s = seconds_to_best(other), _best_s(other)
  if ratio.figure == columns_lib.SEARCH:
    our_s = seconds_to_best(ours)
  else:
    our_s = None if best_s is None else seconds_to(ours, best_s)
  return their_s / our_s if their_s and our_s else None


def _best_s(record: _Record | None) -> float | None:
  if not figures.valid(record) or not record['curve']:
    return None
  return record['curve'][-1][2]


def _spread(values: Sequence[float], unit: str, form: str) -> str:
  if len(values) == 1:
    return f'{values[0]:{form}} {unit}'
  middle = statistics.geometric_mean(values)
  return (f'{middle:{form}} {unit} ({min(values):{form}} to '
          f'{max(values):{form}})')
