import sys

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import presets
from gdp_grappler.placers.list_scheduling import bundling
from gdp_grappler.placers.list_scheduling import favourite_children
from gdp_grappler.placers.list_scheduling import native_scheduler
from gdp_grappler.placers.list_scheduling import proposals
from gdp_grappler.placers.list_scheduling import reservations
from gdp_grappler.placers.list_scheduling import task_graph
from helpers import graphs
from helpers import problems

_LINK = 1., .01  # 1 s and 100 bytes/s.


def _tasks(graph, seconds=1.):
  problem = problems.make(graph, seconds=seconds)
  return task_graph.from_problem(problem, problem.allowed)


def test_tasks_of_a_graph():
  tasks = _tasks(
      graphs.make_graph([(0, 1, 8), (0, 2, 8), (0, 2), (1, 2, 5, 0),
                         (1, 2, 7, 1)], groups=[0, 1, 0]))
  made = [(int(tasks.tensor_tasks[t]), int(tasks.tensor_bytes[t]), c)
          for t, c in tasks.uses.tolist()]
  assert sorted(made) == [(0, 0, 2), (0, 8, 1), (0, 8, 2), (1, 5, 2), (1, 7, 2)]
  assert tasks.bundles.tolist() == [0, 1, 0]
  pairs, sent_s = tasks.pairs(*_LINK)
  assert pairs.tolist() == [[0, 1], [0, 2], [1, 2]]
  np.testing.assert_allclose(sent_s, [1.08, 2.08, 2.12])


def test_what_is_not_run_sends_nothing():
  graph = graphs.chain(2).replace(executions=[0, 1])
  assert _tasks(graph).tensor_bytes.tolist() == [0]


def test_contraction():
  tasks = _tasks(graphs.chain(4, 100), [1, 2, 3, 4])
  joined = task_graph.contract(tasks, np.array([7, 7, 9, 9]),
                               np.array([0, 0, 2, 2]))
  assert joined.op_tasks.tolist() == [0, 0, 1, 1]
  assert joined.seconds[:, 0].tolist() == [3, 7]
  assert joined.uses.tolist() == [[0, 1]] and joined.tensor_tasks == [0]
  assert joined.group_bundles.tolist() == [0, 0, 1, 1]
  assert joined.bundles.tolist() == [0, 1]


def test_a_chain_is_one_task_and_long_branches_stay_apart():
  assert bundling.fuse(_tasks(graphs.chain(9)), _LINK, 0).num_tasks == 1
  diamond = graphs.make_graph([(0, 1, 100), (0, 2, 100), (1, 3, 100),
                               (2, 3, 100)])
  assert bundling.fuse(_tasks(diamond, 5.), _LINK, 1.).num_tasks == 4
  # Sending takes 2 s: two branches of 1 s are not worth it.
  assert bundling.fuse(_tasks(diamond, 1.), _LINK, 1.).num_tasks == 1


def test_ops_for_different_devices_are_not_fused():
  graph = graphs.chain(4, allowed_types=[[1, 1], [1, 1], [1, 0], [1, 0]])
  tasks = bundling.fuse(_tasks(graph), _LINK, 1.)
  assert tasks.op_tasks.tolist() == [0, 0, 1, 1]


def test_large_tensors_stay_at_home_up_to_a_fair_part():
  graph = graphs.make_graph([(0, 1, 9), (1, 2, 999), (2, 3, 99)])
  tasks = bundling.co_place(_tasks(graph), _LINK, 2)
  assert tasks.num_tasks == 4
  assert tasks.bundles.tolist() == [0, 1, 1, 2]
  assert bundling.co_place(_tasks(graph), _LINK, 1).num_bundles == 1


def test_what_costs_more_to_send_than_it_can_save_stays_at_home():
  graph = graphs.make_graph([(0, 1, 100), (2, 1, 100), (1, 3, 300)])

  def bundles(grain):
    return bundling.co_place_dear(_tasks(graph, [3., 1., 1., 9.]), _LINK,
                                  grain).bundles.tolist()

  # 1 and 3 save 1 s and send for 4 s; then 0 and 2 have 3 s and 1 s to save.
  assert bundles(1) == [0, 1, 1, 1]
  assert bundles(2) == [0, 0, 0, 0]
  assert bundles(.2) == [0, 1, 2, 3]


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 999), num_ops=st.integers(1, 120),
       grain=st.sampled_from([0., .5, 1., 16.]), parts=st.integers(1, 8))
def test_bundles_are_sound(seed, num_ops, grain, parts):
  graph = graphs.random_graph(seed, num_ops, window=9)
  rng = np.random.default_rng(seed)
  types = np.ones((num_ops, 2), bool)
  types[:, 1] = (rng.random(graph.num_groups) < .7)[graph.groups]
  graph = graph.replace(allowed_types=types)
  problem = problems.make(graph, seconds=rng.lognormal(0, 1, num_ops))
  whole = task_graph.from_problem(problem, problem.allowed)
  tasks = bundling.co_place(bundling.fuse(whole, _LINK, grain), _LINK, parts)
  tasks = bundling.co_place_dear(tasks, _LINK, grain / 10)
  native_scheduler.topological_order(tasks)  # Raises if there is a cycle.
  np.testing.assert_allclose(tasks.seconds.sum(0), whole.seconds.sum(0))
  by_op = tasks.group_bundles[graph.groups]
  assert (tasks.bundles[tasks.op_tasks] == by_op).all()
  assert (tasks.allowed[by_op] == problem.allowed[graph.groups]).all()


def test_the_share_that_is_alive():
  # A chain needs two of its tensors at a time.
  graph = graphs.chain(5, 100, param_bytes=[7, 0, 0, 0, 0])
  assert reservations.alive_share(graph) == .5
  assert reservations.alive_share(graphs.make_graph(num_ops=3)) == 1
  assert reservations.group_bytes(graph, .5).tolist() == [57, 50, 50, 50, 0]


@pytest.mark.parametrize('name, halvings, targets',
                         [('cpu', 0, [0]), ('1xP100', 2, [1]),
                          ('2xP100', 2, [1]), ('4xP100', 1, [1, 2]),
                          ('4xP100', 9, [1]), ('8xP100', 1, [1, 2, 3, 4]),
                          ('2xK40+2xP100', 1, [3, 4])])
def test_accelerators_in_use(name, halvings, targets):
  cluster = presets.preset(name)
  graph = graphs.make_graph(num_ops=3, flops=1e12)
  problem = problems.make(graph, cluster)
  assert proposals.Proposals(problem).targets(halvings).tolist() == targets


def test_favourite_children_of_a_chain():
  tasks = _tasks(graphs.chain(4, 100))
  work_s = np.ones(4)
  assert favourite_children.solve(tasks, work_s, _LINK,
                                  9).tolist() == [1, 2, 3, -1]
  # No favourites across a cut.
  assert favourite_children.solve(tasks, work_s, _LINK,
                                  2).tolist() == [1, -1, 3, -1]


def test_the_child_on_the_critical_path_is_the_favourite():
  graph = graphs.make_graph([(0, 1, 100), (0, 2, 100), (1, 3, 100),
                             (2, 3, 100)])
  tasks = _tasks(graph)
  found = favourite_children.solve(tasks, np.array([1, 9, 2, 1]), _LINK, 9)
  assert found.tolist() == [1, 3, -1, -1]


def test_the_dearest_child_is_the_favourite_where_the_path_does_not_say():
  graph = graphs.make_graph([(0, 1, 10, 0), (0, 2, 500, 1), (3, 4)])
  found = favourite_children.solve(_tasks(graph), np.array([1, 1, 1, 99, 99]),
                                   _LINK, 9)
  assert found[0] == 2


def test_without_highspy(monkeypatch):
  monkeypatch.setitem(sys.modules, 'highspy', None)
  with pytest.raises(errors.GdpError, match='needs the package highspy'):
    favourite_children.solve(_tasks(graphs.chain(2)), np.ones(2), _LINK, 9)
