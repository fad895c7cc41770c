"""Favourite children of tasks, by linear programming and by matching.

Hanen and Munier, "An approximation algorithm for scheduling dependent tasks on
m processors with small communication delays", ETFA 1995: a schedule on as many
devices as one likes gives each task at most one favourite child, which runs on
the same device right after it and needs no transfer, and at most one parent
whose favourite it is. With y_ij = 1 for a favourite child j of i, task times p,
transfer times c, starts s and a makespan C the program is

    minimise C
    s_i + p_i <= C
    s_i + p_i + c_ij (1 - y_ij) <= s_j     for each pair i, j
    sum_j y_ij <= 1 for each i             sum_i y_ij <= 1 for each j

with 0 <= y <= 1 relaxed; their x is 1 - y. Baechi (Jeon et al. 2020, section
3.2) rounds: x below 0.1 is a favourite child.

`solve` does so, with two changes. The makespan leaves most of y open; a second,
small term of the objective prefers to spare long transfers. And large graphs
are cut into windows of consecutive tasks in topological order, each a program
of its own that knows how much has to follow each task; no favourites cross a
cut.

`matched` looks for whole numbers y at once: pairs on the longest paths are
matched first, and once more with the paths that are left, a few times. What is
rounded away from the program's fractions is not lost, so that the makespan with
its favourites is shorter than with those of `solve`, and it takes milliseconds.
"""

from __future__ import annotations

from concurrent import futures
import types
from typing import Any

from absl import logging
import numpy as np

from gdp_grappler import cores
from gdp_grappler import extras
from gdp_grappler.placers.list_scheduling import native_scheduler
from gdp_grappler.placers.list_scheduling import task_graph

_FAVOURITE = 0.9  # Baechi's 0.1, of x = 1 - y.
# The second term of the objective, of the makespan that it may cost.
_SPARED = 0.05
# Of the rounds of `matched`.
_LIMITS = 0., .5, .75, .9, .95, 1.


def matched(tasks: task_graph.TaskGraph, work_s: np.ndarray,
            link: tuple[float, float]) -> np.ndarray:
  """int32 [2, M], the favourite child of each task or -1, by matching.

  The second row has only those that every round matched.

  Args:
    tasks: M tasks.
    work_s: [M] how long tasks take.
    link: Seconds of latency and per byte.
  """
  pairs, sent_s = tasks.pairs(*link)
  order = native_scheduler.topological_order(tasks)
  position = np.empty(tasks.num_tasks, np.int64)
  position[order] = np.arange(tasks.num_tasks)
  by_parent = np.argsort(position[pairs[:, 0]], kind='stable')
  found = native_scheduler.favourites(position[pairs[by_parent]],
                                      sent_s[by_parent], work_s[order], _LIMITS)
  result = np.full(found.shape, -1, np.int32)
  result[:, order] = np.where(found >= 0, order[found], -1)
  return result


def solve(tasks: task_graph.TaskGraph, work_s: np.ndarray,
          link: tuple[float, float], window: int) -> np.ndarray:
  """int32 [M], the favourite child of each task or -1.

  Args:
    tasks: M tasks.
    work_s: [M] how long tasks take.
    link: Seconds of latency and per byte.
    window: Tasks of one linear program.

  Raises:
    GdpError: highspy is not installed.
  """
  highs = _highspy()
  pairs, sent_s = tasks.pairs(*link)
  position = np.empty(tasks.num_tasks, np.int64)
  position[native_scheduler.topological_order(tasks)] = np.arange(
      tasks.num_tasks)
  # Tasks by position from here on.
  ends = position[pairs]
  work_s = work_s[np.argsort(position)]
  left_s = _work_to_come(ends, work_s)

  def favourites(first: int) -> np.ndarray:
    last = min(first + window, tasks.num_tasks)
    inside = np.flatnonzero((ends[:, 0] >= first) & (ends[:, 1] < last))
    return inside[_window(highs, ends[inside] - first, sent_s[inside],
                          work_s[first:last], left_s[first:last]) > _FAVOURITE]

  result = np.full(tasks.num_tasks, -1, np.int32)
  # The solver lets other threads run.
  with futures.ThreadPoolExecutor(cores.own()) as pool:
    for chosen in pool.map(favourites, range(0, tasks.num_tasks, window)):
      result[pairs[chosen, 0]] = pairs[chosen, 1]
  return result


def _highspy() -> types.ModuleType:
  extras.require('The placer "m_sct"', 'highspy')
  import highspy
  return highspy


def _work_to_come(ends: np.ndarray, work_s: np.ndarray) -> np.ndarray:
  """float64 [M], seconds from the start of a task to the end of the step.

  On its longest path, without transfers.
  """
  left_s = work_s.tolist()
  own_s = work_s.tolist()
  for producer, consumer in ends[np.argsort(-ends[:, 0])].tolist():
    through = own_s[producer] + left_s[consumer]
    if through > left_s[producer]:
      left_s[producer] = through
  return np.array(left_s)


def _window(highs: types.ModuleType, ends: np.ndarray, sent_s: np.ndarray,
            work_s: np.ndarray, left_s: np.ndarray) -> np.ndarray:
  """float64 [E], y of the pairs of M tasks.

  Columns are s [M], y [E] and C; rows are those of the module's text. Times
  are in units of the longest way, so that tolerances fit.
  """
  m, e = len(work_s), len(ends)
  if not e:
    return np.zeros(0)
  unit = max(left_s.max(), sent_s.max())
  if not unit:
    return np.zeros(e)  # Nothing takes any time, so nothing is spared.
  work, left, sent = work_s / unit, left_s / unit, sent_s / unit
  tasks, pairs = np.arange(m), np.arange(e)
  ones_m, ones_e = np.ones(m), np.ones(e)
  # Rows: s_j - s_i + c_ij y_ij >= p_i + c_ij; C - s_i >= left_i; two sums.
  rows = np.concatenate([
      pairs, pairs, pairs, e + tasks, e + tasks, e + m + ends[:, 0],
      e + 2 * m + ends[:, 1]
  ])
  columns = np.concatenate([
      ends[:, 1], ends[:, 0], m + pairs, tasks,
      np.full(m, m + e), m + pairs, m + pairs
  ])
  values = np.concatenate(
      [ones_e, -ones_e, sent, -ones_m, ones_m, ones_e, ones_e])
  order = np.argsort(columns, kind='stable')
  lp = highs.HighsLp()
  lp.num_col_, lp.num_row_ = m + e + 1, e + 3 * m
  spared = _SPARED * sent / max(sent.sum(), 1e-12)
  lp.col_cost_ = np.concatenate([np.zeros(m), -spared, [1.]])
  lp.col_lower_ = np.zeros(m + e + 1)
  lp.col_upper_ = np.concatenate(
      [np.full(m, highs.kHighsInf), ones_e, [highs.kHighsInf]])
  lp.row_lower_ = np.concatenate(
      [work[ends[:, 0]] + sent, left,
       np.full(2 * m, -highs.kHighsInf)])
  lp.row_upper_ = np.concatenate(
      [np.full(e + m, highs.kHighsInf),
       np.ones(2 * m)])
  lp.a_matrix_.format_ = highs.MatrixFormat.kColwise
  lp.a_matrix_.start_ = np.searchsorted(columns[order],
                                        np.arange(m + e + 2)).astype(np.int32)
  lp.a_matrix_.index_ = rows[order].astype(np.int32)
  lp.a_matrix_.value_ = values[order]
  solution = _solution(highs, lp)
  return _dearest(ends, sent_s) if solution is None else solution[m:m + e]


def _dearest(ends: np.ndarray, sent_s: np.ndarray) -> np.ndarray:
  """float64 [E], 1 for pairs that send longest, each task in two at most."""
  result = np.zeros(len(ends))
  parents: set[int] = set()
  children: set[int] = set()
  for pair in np.argsort(-sent_s, kind='stable').tolist():
    parent, child = ends[pair].tolist()
    if parent not in parents and child not in children:
      parents.add(parent)
      children.add(child)
      result[pair] = 1.
  return result


def _solution(highs: types.ModuleType, lp: Any) -> np.ndarray | None:
  """Values of the columns; None, and a warning, if there are none."""
  solver = highs.Highs()
  for option, value in (('output_flag', False), ('threads', 1), ('solver',
                                                                 'simplex')):
    solver.setOptionValue(option, value)
  solver.passModel(lp)
  solver.run()
  status = solver.getModelStatus()
  if status != highs.HighsModelStatus.kOptimal:
    logging.warning(
        'A linear program of m_sct was not solved (%s): there, each task '
        'favours the child that it sends to longest.',
        solver.modelStatusToString(status))
    return None
  return np.array(solver.getSolution().col_value)
