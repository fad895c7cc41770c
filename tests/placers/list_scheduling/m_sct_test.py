import dataclasses

import numpy as np
import pytest

from gdp_grappler.placers.list_scheduling import bundling
from gdp_grappler.placers.list_scheduling import m_sct
from gdp_grappler.placers.list_scheduling import proposals
from helpers import clusters
from helpers import graphs
from helpers import problems
from helpers import task_graphs


def test_a_favourite_child_follows_its_parent():
  """Each of two chains with long transfers gets one device."""
  edges = [(i, i + 2, 1000) for i in range(6)]
  problem = problems.make(graphs.make_graph(edges), seconds=[[99, 5, 5]] * 8)
  devices = m_sct.MSctPlacer().place(problem).devices
  assert sorted(map(set, (devices[::2].tolist(), devices[1::2].tolist())),
                key=min) == [{1}, {2}]


def test_favourites_are_sought_once_for_all_bundles_of_one_grain(monkeypatch):
  solved = []
  matched = m_sct.favourite_children.matched

  def counted(tasks, *arguments):
    solved.append(tasks.num_tasks)
    return matched(tasks, *arguments)

  monkeypatch.setattr(m_sct.favourite_children, 'matched', counted)
  m_sct.MSctPlacer().place(problems.make(graphs.random_graph(0, 60)))
  # Parts and transfer grain make bundles of given tasks.
  grains = {
      dataclasses.replace(config.bundles, parts=None, transfer_grain=None)
      for config, _ in m_sct._CONFIGS if config.rules.favourites
  }
  assert len(solved) == len(grains) < len(m_sct._CONFIGS)


@pytest.mark.parametrize('seconds, finish', [([9, 1, 1], False),
                                             ([9, 1, 2], True)])
def test_where_accelerators_differ_the_end_counts(seconds, finish):
  shared = task_graphs.proposals_of(
      problems.make(graphs.chain(3), seconds=[seconds] * 3))
  way = m_sct._CONFIGS[0][0]
  assert m_sct._suited(shared, way).rules.earliest_finish == finish
  # A published configuration stays as it is.
  assert m_sct._suited(shared, m_sct._PUBLISHED) is m_sct._PUBLISHED


def test_favourites_at_home_share_a_device_up_to_a_fair_part():
  """A chain of 4 tasks of 1 s on two devices."""
  cluster = clusters.make_cluster(2)
  problem = problems.make(graphs.chain(4, 1000), cluster, [[9, 1, 1]] * 4)
  shared = task_graphs.proposals_of(problem)
  tasks = shared.tasks(proposals.Bundles())
  pairs = np.array([[0, 1], [1, 2], [2, 3]])
  # Each of two parts has at most half of the work.
  assert bundling.co_place_pairs(tasks, pairs, 2).num_bundles == 2
  propose = m_sct._proposer(shared, proposals.config(), 1,
                            np.array([1, 2, 3, -1]))
  devices = propose(cluster.pool_bytes)
  assert devices[0] == devices[1] and devices[2] == devices[3]


def test_only_as_published_a_program_is_solved(monkeypatch):
  """The portfolio needs no library. A large graph has smaller windows."""
  windows = []

  def solve(tasks, work_s, link, window):
    windows.append(window)
    return np.full(tasks.num_tasks, -1, np.int32)

  monkeypatch.setattr(m_sct.favourite_children, 'solve', solve)
  problem = problems.make(graphs.random_graph(0, 60))
  m_sct.MSctPlacer().place(problem)
  assert not windows
  m_sct.MSctPlacer(published=True).place(problem)
  monkeypatch.setattr(m_sct, '_MOST_OPS', 10)
  m_sct.MSctPlacer(published=True).place(problem)
  assert windows == [4000, 2000]
