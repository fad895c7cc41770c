"""How far a task's best placement is from the lower bound, and why."""

from __future__ import annotations

import dataclasses
from typing import Any, Mapping

from placer_model.benchmark import cell as cell_lib
from placer_model.benchmark import figures

# A step with a smaller ratio to its bound is not worth a search.
_AT_BOUND = 1.05
# A path, link or device that takes this share of the step limits it.
_DOMINATES = .9
# A memory that is filled to this share limits the choice of placements.
_FULL = .9


@dataclasses.dataclass(frozen=True)
class Verdict:
  """What limits the best placement of a task.

  Attributes:
    task: Name of the task.
    placer: Placer with the best placement.
    step_time_s: Step time in seconds, with ready ops first in, first out.
    lower_bound_s: Lower bound of the step times of all placements.
    over_bound: Ratio of step time to lower bound.
    bound_by: 'critical path' or 'work', the larger of the two bounds.
    reason: 'bound', 'transfers', 'link', 'device', 'host' or 'waiting'.
    is_full: Whether the placement nearly fills a memory.
    needs_several: Whether one accelerator cannot hold the graph; None if that
      was not tried.
    ordered: Placer with the shortest step with control edges; None if there is
      no such price.
    ordered_step_time_s: That step time.
  """

  task: str
  placer: str
  step_time_s: float
  lower_bound_s: float
  over_bound: float
  bound_by: str
  reason: str
  is_full: bool
  needs_several: bool | None
  ordered: str | None
  ordered_step_time_s: float | None

  @property
  def text(self) -> str:
    """One sentence that explains `reason`."""
    return _TEXTS[self.reason] + ('; memory limits the choice'
                                  if self.is_full else
                                  '; one accelerator does not hold the graph'
                                  if self.needs_several else '')


_TEXTS = {
    'bound': 'at its bound: no placement is noticeably faster',
    'transfers': 'communication: the longest path of this placement, transfers '
                 'included, takes nearly all of the step',
    'link': 'communication: one link is busy nearly all of the step',
    'device': 'work: one device is busy nearly all of the step',
    'host': "the host: one device with the host's dispatch for it is busy "
            'nearly all of the step',
    'waiting': 'waiting',
}
COMMUNICATION = ('transfers', 'link')


def verdict(task: Mapping[str, Any]) -> Verdict | None:
  """Returns what limits the best placement of a task.

  None means that no placement runs, that its step takes no time, or that no
  bound is known.
  """
  cells = task['cells']
  best, bound_s = figures.best(cells), task['lower_bound_s']
  if best is None or not (bound_s and cells[best]['step_time_s']):
    return None
  record = cells[best]
  step_s = record['step_time_s']
  ordered = figures.best(cells, key=figures.ORDERED)
  return Verdict(
      task['name'], best, step_s, bound_s, step_s / bound_s,
      'critical path' if task['critical_path_s'] >= task['work_s'] else 'work',
      _reason(record['limits'], step_s, bound_s), _is_full(record),
      _needs_several(cells), ordered,
      cells[ordered][figures.ORDERED] if ordered else None)


def _reason(limits: Mapping[str, float], step_s: float, bound_s: float) -> str:
  if step_s <= _AT_BOUND * bound_s:
    return 'bound'
  shares = {
      'transfers': limits['critical_path_s'] / step_s,
      'link': limits['busiest_channel_s'] / step_s,
      'device': limits['busiest_device_s'] / step_s
  }
  largest = max(shares, key=shares.__getitem__)
  if shares[largest] >= _DOMINATES:
    return largest
  # Results of an earlier version lack this figure.
  hosted = limits.get('busiest_hosted_s', 0.) / step_s
  return 'host' if hosted >= _DOMINATES else 'waiting'


def _is_full(record: figures.Record) -> bool:
  return any(record['peak_bytes'][device] > _FULL * capacity
             for device, capacity in record['capacity_bytes'].items())


def _needs_several(cells: Mapping[str, figures.Record]) -> bool | None:
  alone = cells.get('gpu_only')
  return None if alone is None else alone['status'] == cell_lib.OOM
