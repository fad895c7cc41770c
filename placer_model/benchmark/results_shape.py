"""Checks the structure of a results.json.gz.

The file may be from an untrusted source. After the check, every value that
tables and pictures use is present and of the right kind, numbers are finite,
and texts have no commands for a terminal.
"""

from __future__ import annotations

import math
import re
from typing import Any, Callable, Iterable, Mapping

from gdp_grappler.problems import rewards
from placer_model.benchmark import cell as cell_lib
from placer_model.benchmark import clocks

# Largest number allowed, so that sums, squares and ratios are finite.
_MOST = 1e30
_MOST_LETTERS = 1 << 16  # Characters of a text. A longer one is an error.
_COMMANDS = re.compile(r'[\x00-\x08\x0b-\x1f\x7f-\x9f]')

# Returns what is wrong with a value, or ''.
_Check = Callable[[Any], str]


def fault(found: object) -> str:
  """Returns what is wrong with results; '' if nothing is.

  Args:
    found: Content of the file.
  """
  return _RESULTS(found)


def _number(value: object) -> str:
  if isinstance(value, bool) or not isinstance(value, (int, float)):
    return 'is no number'
  fine = 0 <= value <= _MOST and math.isfinite(value)
  return '' if fine else f'is not from 0 to {_MOST:g}'


def _text(value: object) -> str:
  if not isinstance(value, str) or len(value) > _MOST_LETTERS:
    return 'is no text'
  return '' if value.isprintable() else 'cannot be printed'


def _words(value: object) -> str:
  """Checks a text of one or more lines without terminal commands."""
  fine = isinstance(value, str) and not _COMMANDS.search(value)
  return '' if fine else 'is no text'


def _name(value: object) -> str:
  """Checks a part of a file name."""
  return _text(value) or ('is a path' if '/' in str(value) else '')


def _flag(value: object) -> str:
  return '' if isinstance(value, bool) else 'is neither true nor false'


def _one_of(names: Iterable[str], what: str) -> _Check:
  return lambda value: '' if value in tuple(names) else f'is no {what}'


def _count(value: object) -> str:
  return _number(value) if isinstance(value, int) else 'is no whole number'


def _maybe(check: _Check) -> _Check:
  return lambda value: '' if value is None else check(value)


def _each(check: _Check) -> _Check:
  """Returns a check of a list's items."""

  def checked(value: object) -> str:
    if not isinstance(value, list):
      return 'is no list'
    return _first({str(i): check(each) for i, each in enumerate(value)})

  return checked


def _every(check: _Check) -> _Check:
  """Returns a check of the values of an object with any names."""

  def checked(value: object) -> str:
    if not isinstance(value, dict):
      return 'is no object'
    if any(map(_text, value)):
      return 'has a name that cannot be printed'
    return _first({name: check(each) for name, each in value.items()})

  return checked


def _with(needed: Mapping[str, _Check],
          allowed: Mapping[str, _Check] | None = None) -> _Check:
  """Returns a check of an object with given names.

  Args:
    needed: Checks of names that must be present.
    allowed: Checks of names that may be present; other names are then faults.
      By default, other names may be present with any value.
  """

  def checked(value: object) -> str:
    if not isinstance(value, dict):
      return 'is no object'
    missing = [name for name in needed if name not in value]
    if missing:
      return f'has no "{missing[0]}"'
    checks = {**needed, **(allowed or {})}
    other = [name for name in value if name not in checks]
    if other and allowed is not None:
      return f'has {other[0]!r}, which this version does not know'
    return _first({
        name: check(value[name]) for name, check in checks.items()
        if name in value
    })

  return checked


def _first(faults: Mapping[str, str]) -> str:
  """Returns the first fault, with the path to its value."""
  for name, said in faults.items():
    if said:
      return f'/{name}{said}' if said.startswith('/') else f'/{name} {said}'
  return ''


def _point(value: Any) -> str:
  """Checks a point of a curve: placements priced, seconds, step time."""
  return _each(_number)(value) or ('' if len(value) == 3 else 'is no point')


def _peaks(value: Mapping[str, Any]) -> str:
  """Checks that memories in use have capacities to compare with."""
  peaks, capacity = value['peak_bytes'], value['capacity_bytes']
  fine = peaks and peaks.keys() == capacity.keys() and all(capacity.values())
  return '' if fine else '/peak_bytes are not those of capacity_bytes'


def _cell(value: object) -> str:
  said = _with({'status': _text})(value)
  if said:
    return said
  assert isinstance(value, dict)
  said = _with({'jobs': _count})(value.get('settings', {'jobs': 1}))
  if said:
    return f'/settings{said}'
  status = value['status']
  if status in (cell_lib.OK, cell_lib.OOM):
    step = {
        'step_time_s': _number if status == cell_lib.OK else _maybe(_number)
    }
    return _with({**step, **_FIGURES})(value) or _peaks(value)
  if status in (cell_lib.INFEASIBLE, cell_lib.FAILED):
    return _with({'message': _words})(value)
  return '/status is unknown'


def _task(value: Any) -> str:
  said = _with(_OF_TASKS)(value)
  if said or not value['lower_bound_s']:
    return said
  # If a bound is known, each cell must say what limits its placement.
  if any('limits' in cell and cell['limits'] is None
         for cell in value['cells'].values()):
    return '/lower_bound_s is known, but a cell has no limits'
  return _with({'critical_path_s': _number, 'work_s': _number})(value)


_LIMITS = _with(
    {
        'critical_path_s': _number, 'busiest_device_s': _number,
        'busiest_channel_s': _number
    }, {'busiest_hosted_s': _number})
_FIGURES = {
    'ordered_step_time_s': _maybe(_number), 'peak_bytes': _every(_count),
    'capacity_bytes': _every(_count), 'missing_bytes': _every(_count),
    'cut_tensors': _count, 'cut_bytes': _number,
    'lower_bound_s': _maybe(_number), 'over_bound': _maybe(_number),
    'limits': _maybe(_LIMITS), 'evaluations': _count, 'seconds': _number,
    'curve': _each(_point), 'won_by': _text
}
_OF_TASKS = {
    'name': _text, 'file_name': _name, 'label': _text, 'cluster': _text,
    'setting': _text, 'num_ops': _maybe(_count),
    'num_accelerators': _maybe(_count), 'lower_bound_s': _maybe(_number),
    'cells': _every(_cell)
}
_SETTINGS = {
    'seed': _count, 'reward': _one_of(rewards.ALL, 'kind of reward'),
    'quick': _flag, 'time_budget_s': _maybe(_number), 'local_workers': _count,
    'batch_size': _count, 'trip_count': _count, 'profile': _text,
    'jobs': _count, 'may_round': _flag, 'max_memory': _text,
    'clock': _one_of(clocks.CLOCKS, 'clock')
}
_RESULTS = _with({
    'simulated': _flag, 'command': _words, 'settings': _with({}, _SETTINGS),
    'versions': _every(_text), 'tasks': _each(_task)
})
