"""Favourite children of tasks, by linear programming and by matching.

Hanen and Munier, "An approximation algorithm for scheduling dependent tasks on
m processors with small communication delays", ETFA 1995. In a schedule on any
number of devices, each task has at most one favourite child. The favourite
child runs right after the task on the same device, so no transfer is needed. A
task is the favourite child of at most one parent. The program has y_ij = 1 if
task j is the favourite child of task i, seconds p of tasks, seconds c of
transfers, starts s and the makespan C:

    minimise C
    s_i + p_i <= C
    s_i + p_i + c_ij (1 - y_ij) <= s_j     for each pair i, j
    sum_j y_ij <= 1 for each i             sum_i y_ij <= 1 for each j

The program is relaxed to 0 <= y <= 1. The paper's x is 1 - y. Baechi (Jeon et
al. 2020, section 3.2) rounds the solution: j is the favourite child if x is
small.

`solve` solves this program, with two changes. First, the makespan alone leaves
most of y undetermined. So a second, small term of the objective prefers to save
long transfers. Second, `solve` cuts a large graph into windows of consecutive
tasks in topological order. Each window is a program of its own, which knows the
work that has to follow each task. No favourite child is in another window than
its parent.

`matched` finds whole numbers y directly, by a matching of parents and children.
It matches pairs on the longest paths first. It repeats the matching a few
times, each time with the path lengths that the previous matching leaves. The
solution of the program has fractions, and rounding them loses some of their
gain. The matching does not round. So its makespan is shorter than that of
`solve`. It also takes far less time.
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

# A child with a larger y is the favourite child; Baechi's bound of x is 1 less
# this number.
_FAVOURITE = 0.9
# Largest value of the second term of the objective, as a share of the longest
# path.
_SPARED = 0.05
# Limits of the rounds of `matched`; see `native_scheduler.favourites`.
_LIMITS = 0., .5, .75, .9, .95, 1.


def matched(tasks: task_graph.TaskGraph, work_s: np.ndarray,
            link: tuple[float, float]) -> np.ndarray:
  """int32 [2, M], the favourite child of each task or -1, by matching.

  The second row has only the favourite children that all rounds have matched.

  Args:
    tasks: M tasks.
    work_s: [M], seconds of each task.
    link: Seconds of latency, and seconds per byte.
  """
  pairs, sent_s = tasks.pairs(*link)
  order = native_scheduler.topological_order(tasks)
  position = np.empty(tasks.num_tasks, np.int64)
  position[order] = np.arange(tasks.num_tasks)
  by_parent = np.argsort(position[pairs[:, 0]], kind='stable')
  children = native_scheduler.favourites(position[pairs[by_parent]],
                                         sent_s[by_parent], work_s[order],
                                         _LIMITS)
  result = np.full(children.shape, -1, np.int32)
  result[:, order] = np.where(children >= 0, order[children], -1)
  return result


def solve(tasks: task_graph.TaskGraph, work_s: np.ndarray,
          link: tuple[float, float], window: int) -> np.ndarray:
  """int32 [M], the favourite child of each task or -1, by linear programs.

  Args:
    tasks: M tasks.
    work_s: [M], seconds of each task.
    link: Seconds of latency, and seconds per byte.
    window: Tasks of one linear program.

  Raises:
    GdpError: highspy is not installed.
  """
  highs = _highspy()
  pairs, sent_s = tasks.pairs(*link)
  position = np.empty(tasks.num_tasks, np.int64)
  position[native_scheduler.topological_order(tasks)] = np.arange(
      tasks.num_tasks)
  # From here on, tasks are numbered by their position.
  ends = position[pairs]
  work_s = work_s[np.argsort(position)]
  left_s = _work_to_come(ends, work_s)

  def favourites(first: int) -> np.ndarray:
    last = min(first + window, tasks.num_tasks)
    inside = np.flatnonzero((ends[:, 0] >= first) & (ends[:, 1] < last))
    return inside[_window(highs, ends[inside] - first, sent_s[inside],
                          work_s[first:last], left_s[first:last]) > _FAVOURITE]

  result = np.full(tasks.num_tasks, -1, np.int32)
  # The solver releases Python's lock, so threads run in parallel.
  with futures.ThreadPoolExecutor(cores.own()) as pool:
    for chosen in pool.map(favourites, range(0, tasks.num_tasks, window)):
      result[pairs[chosen, 0]] = pairs[chosen, 1]
  return result


def _highspy() -> types.ModuleType:
  extras.require('The placer "m_sct_published"', 'highspy')
  import highspy
  return highspy


def _work_to_come(ends: np.ndarray, work_s: np.ndarray) -> np.ndarray:
  """float64 [M], seconds of the longest path from each task to the end.

  The task counts, transfers do not.
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

  The columns are s [M], y [E] and C. The rows are the inequalities in the
  docstring of this module. Times are divided by the longest path, because the
  solver has absolute tolerances.
  """
  m, e = len(work_s), len(ends)
  if not e:
    return np.zeros(0)
  unit = max(left_s.max(), sent_s.max())
  if not unit:
    return np.zeros(e)  # No transfer takes time, so no favourite child helps.
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
  return _greedy_matching(ends, sent_s) if solution is None else solution[m:m
                                                                          + e]


def _greedy_matching(ends: np.ndarray, sent_s: np.ndarray) -> np.ndarray:
  """float64 [E], y of a greedy matching, the longest transfer first.

  Each task is a parent at most once, and a child at most once.
  """
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
  """Values of the columns; None, and a warning, if the solver fails."""
  solver = highs.Highs()
  for option, value in (('output_flag', False), ('threads', 1), ('solver',
                                                                 'simplex')):
    solver.setOptionValue(option, value)
  solver.passModel(lp)
  solver.run()
  status = solver.getModelStatus()
  if status != highs.HighsModelStatus.kOptimal:
    logging.warning(
        'A linear program of m_sct_published was not solved (%s). A greedy '
        'matching takes its place, the longest transfers first.',
        solver.modelStatusToString(status))
    return None
  return np.array(solver.getSolution().col_value)
