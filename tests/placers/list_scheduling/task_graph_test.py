import numpy as np

from gdp_grappler.placers.list_scheduling import task_graph
from helpers import graphs
from helpers import task_graphs


def test_tasks_of_a_graph():
  tasks = task_graphs.make(
      graphs.make_graph([(0, 1, 8), (0, 2, 8), (0, 2), (1, 2, 5, 0),
                         (1, 2, 7, 1)], groups=[0, 1, 0]))
  made = [(int(tasks.tensor_tasks[t]), int(tasks.tensor_bytes[t]), c)
          for t, c in tasks.uses.tolist()]
  assert sorted(made) == [(0, 0, 2), (0, 8, 1), (0, 8, 2), (1, 5, 2), (1, 7, 2)]
  assert tasks.bundles.tolist() == [0, 1, 0]
  pairs, sent_s = tasks.pairs(*task_graphs.LINK)
  assert pairs.tolist() == [[0, 1], [0, 2], [1, 2]]
  np.testing.assert_allclose(sent_s, [1.08, 2.08, 2.12])


def test_what_is_not_run_sends_nothing():
  graph = graphs.chain(2).replace(executions=[0, 1])
  assert task_graphs.make(graph).tensor_bytes.tolist() == [0]


def test_contraction():
  tasks = task_graphs.make(graphs.chain(4, 100), [1, 2, 3, 4])
  joined = task_graph.contract(tasks, np.array([7, 7, 9, 9]),
                               np.array([0, 0, 2, 2]))
  assert joined.op_tasks.tolist() == [0, 0, 1, 1]
  assert joined.seconds[:, 0].tolist() == [3, 7]
  assert joined.uses.tolist() == [[0, 1]] and joined.tensor_tasks == [0]
  assert joined.group_bundles.tolist() == [0, 0, 1, 1]
  assert joined.bundles.tolist() == [0, 1]
