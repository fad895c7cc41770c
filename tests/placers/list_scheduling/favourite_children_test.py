import sys

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.placers.list_scheduling import favourite_children
from helpers import graphs
from helpers import task_graphs


def test_favourite_children_of_a_chain():
  tasks = task_graphs.make(graphs.chain(4, 100))
  work_s = np.ones(4)
  assert favourite_children.solve(tasks, work_s, task_graphs.LINK,
                                  9).tolist() == [1, 2, 3, -1]
  # No favourite child is in another window than its parent.
  assert favourite_children.solve(tasks, work_s, task_graphs.LINK,
                                  2).tolist() == [1, -1, 3, -1]


def test_the_child_on_the_critical_path_is_the_favourite():
  graph = graphs.make_graph([(0, 1, 100), (0, 2, 100), (1, 3, 100),
                             (2, 3, 100)])
  tasks = task_graphs.make(graph)
  found = favourite_children.solve(tasks, np.array([1, 9, 2, 1]),
                                   task_graphs.LINK, 9)
  assert found.tolist() == [1, 3, -1, -1]


def test_the_dearest_child_is_the_favourite_where_the_path_does_not_say():
  graph = graphs.make_graph([(0, 1, 10, 0), (0, 2, 500, 1), (3, 4)])
  found = favourite_children.solve(task_graphs.make(graph),
                                   np.array([1, 1, 1, 99, 99]),
                                   task_graphs.LINK, 9)
  assert found[0] == 2


def test_without_highspy(monkeypatch):
  monkeypatch.setitem(sys.modules, 'highspy', None)
  with pytest.raises(errors.GdpError,
                     match='"m_sct_published" needs the package highspy'):
    favourite_children.solve(task_graphs.make(graphs.chain(2)), np.ones(2),
                             task_graphs.LINK, 9)


@pytest.mark.parametrize('window', [7, 100])
def test_nobody_has_two_favourites_and_nobody_two_parents(window):
  tasks = task_graphs.make(graphs.random_graph(1, 40, window=5))
  work_s = np.random.default_rng(1).exponential(5., tasks.num_tasks)
  found = favourite_children.solve(tasks, work_s, task_graphs.LINK, window)
  children = found[found >= 0]
  assert children.size and len(set(children.tolist())) == children.size
  sent = {tuple(pair) for pair in tasks.pairs(*task_graphs.LINK)[0].tolist()}
  assert {(i, c) for i, c in enumerate(found.tolist()) if c >= 0} <= sent


def test_tasks_that_send_nothing_have_no_favourites():
  tasks = task_graphs.make(graphs.make_graph(num_ops=3))
  assert favourite_children.solve(tasks, np.ones(3), task_graphs.LINK,
                                  9).tolist() == [-1] * 3


def test_what_takes_no_time_has_no_favourites():
  tasks = task_graphs.make(graphs.chain(4, 0))
  assert favourite_children.solve(tasks, np.zeros(4), (0., 0.),
                                  9).tolist() == [-1] * 4


def test_transfers_alone_are_enough():
  tasks = task_graphs.make(graphs.chain(4, 100))
  assert favourite_children.solve(tasks, np.zeros(4), task_graphs.LINK,
                                  9).tolist() == [1, 2, 3, -1]


def test_a_program_that_is_not_solved_favours_the_dearest(monkeypatch, caplog):
  monkeypatch.setattr(favourite_children, '_solution', lambda highs, lp: None)
  graph = graphs.make_graph([(0, 1, 10, 0), (0, 2, 500, 1), (3, 2, 90)])
  found = favourite_children.solve(task_graphs.make(graph), np.ones(4),
                                   task_graphs.LINK, 9)
  assert found.tolist() == [2, -1, -1, -1]


def _longest_path(tasks, work_s, found):
  """Seconds of the longest path without transfers to favourite children."""
  pairs, sent_s = tasks.pairs(*task_graphs.LINK)
  start_s = np.zeros(tasks.num_tasks)
  for _ in range(tasks.num_tasks):
    for (parent, child), seconds in zip(pairs.tolist(), sent_s.tolist()):
      spared = found[parent] == child
      start_s[child] = max(
          start_s[child], start_s[parent] + work_s[parent] +
          (0 if spared else seconds))
  return (start_s + work_s).max()


@pytest.mark.parametrize('seed', range(4))
def test_what_is_matched_makes_no_longer_paths_than_the_program(seed):
  tasks = task_graphs.make(graphs.random_graph(seed, 40, window=5))
  work_s = np.random.default_rng(seed).exponential(5., tasks.num_tasks)
  matched, certain = favourite_children.matched(tasks, work_s, task_graphs.LINK)
  solved = favourite_children.solve(tasks, work_s, task_graphs.LINK, 99)
  children = matched[matched >= 0]
  assert children.size and len(set(children.tolist())) == children.size
  sent = {tuple(pair) for pair in tasks.pairs(*task_graphs.LINK)[0].tolist()}
  assert {(i, c) for i, c in enumerate(matched.tolist()) if c >= 0} <= sent
  assert _longest_path(tasks, work_s,
                       matched) <= _longest_path(tasks, work_s, solved)
  assert (certain[certain >= 0] == matched[certain >= 0]).all()


def test_the_matched_child_is_on_the_critical_path_or_the_dearest():
  graph = graphs.make_graph([(0, 1, 100), (0, 2, 100), (1, 3, 100),
                             (2, 3, 100)])
  work_s = np.array([1, 9, 2, 1])
  found = favourite_children.matched(task_graphs.make(graph), work_s,
                                     task_graphs.LINK)
  assert found.tolist() == [[1, 3, -1, -1]] * 2
  graph = graphs.make_graph([(0, 1, 10, 0), (0, 2, 500, 1), (3, 4)])
  found = favourite_children.matched(task_graphs.make(graph),
                                     np.array([1, 1, 1, 99, 99]),
                                     task_graphs.LINK)
  assert found[0, 0] == 2


def test_nothing_to_match():
  tasks = task_graphs.make(graphs.make_graph(num_ops=3))
  assert favourite_children.matched(tasks, np.ones(3),
                                    task_graphs.LINK).tolist() == [[-1] * 3] * 2
  tasks = task_graphs.make(graphs.chain(4, 0))
  assert favourite_children.matched(tasks, np.zeros(4),
                                    (0., 0.)).tolist() == [[-1] * 4] * 2
