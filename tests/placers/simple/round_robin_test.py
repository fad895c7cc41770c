from gdp_grappler.placers.simple import round_robin
from helpers import clusters
from helpers import graphs
from helpers import problems


def _place(graph, num_gpus=2, seed=0):
  return problems.placed(round_robin.RoundRobinPlacer(), graph,
                         clusters.make_cluster(num_gpus), seed=seed).tolist()


def test_gpus_take_turns_in_topological_order():
  assert _place(graphs.chain(5)) == [1, 2, 1, 2, 1]
  backwards = graphs.make_graph([(2, 1, 8), (1, 0, 8)])
  assert _place(backwards) == [1, 2, 1]
  assert _place(graphs.make_graph([(2, 0, 8), (0, 1, 8)])) == [2, 1, 1]


def test_groups_take_turns_not_ops():
  assert _place(graphs.chain(5, groups=[0, 0, 1, 1, 2])) == [1, 1, 2, 2, 1]


def test_cpus_take_turns_where_there_is_no_gpu():
  assert _place(graphs.chain(3), 0) == [0, 0, 0]


def test_what_only_the_host_runs_takes_nobodys_turn():
  types = [[1, 1], [1, 0], [1, 1], [1, 1]]
  assert _place(graphs.chain(4, allowed_types=types)) == [1, 0, 2, 1]


def test_a_pin_waits_for_no_turn():
  assert _place(graphs.chain(4, pins=['GPU:1', '', '', ''])) == [2, 1, 2, 1]
  assert _place(graphs.chain(3, pins=['', 'CPU:0', ''])) == [1, 0, 2]


def test_the_seed_has_no_influence():
  graph = graphs.random_graph(0, 100)
  assert _place(graph, 3, 0) == _place(graph, 3, 1)
