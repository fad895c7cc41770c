import hypothesis
from hypothesis import strategies
import numpy as np

from gdp_grappler.placers.plans import neighbour_fill
from helpers import graphs


def _follow(graph, devices, allowed=None):
  if allowed is None:
    allowed = np.ones((graph.num_groups, 3), bool)
  return neighbour_fill.follow(graph, np.array(devices),
                               np.array(allowed, bool)).tolist()


def test_inputs_come_first():
  assert _follow(graphs.chain(4), [2, -1, -1, 1]) == [2, 2, 2, 1]


def test_then_outputs():
  assert _follow(graphs.chain(4), [-1, -1, 1, -1]) == [1, 1, 1, 1]


def test_readers_come_first_if_asked_for():
  graph = graphs.make_graph([(0, 1, 80), (1, 2, 8)])
  found = neighbour_fill.follow(graph, np.array([2, -1, 1]),
                                np.ones((3, 3), bool), readers_first=True)
  assert found.tolist() == [2, 1, 1]


def test_most_bytes_decide():
  graph = graphs.make_graph([(0, 2, 5), (1, 2, 6), (0, 3, 5), (4, 3, 1)])
  assert _follow(graph, [0, 1, -1, -1, 2]) == [0, 1, 1, 0, 2]


def test_what_reads_a_variable_is_beside_it():
  graph = graphs.make_graph([(0, 2, 80), (1, 2, 16), (2, 3, 80)],
                            param_bytes=[0, 16, 0, 0])
  assert _follow(graph, [0, 2, -1, -1]) == [0, 2, 2, 2]


def test_a_learning_rate_draws_nothing():
  graph = graphs.make_graph([(0, 2, 80), (1, 2, 4), (2, 3, 80)],
                            param_bytes=[0, 4, 0, 0])
  assert _follow(graph, [0, 2, -1, -1]) == [0, 2, 0, 0]


def test_what_is_not_allowed_does_not_count():
  graph = graphs.make_graph([(0, 2, 9), (1, 2, 1)])
  allowed = [[1, 1, 1], [1, 1, 1], [1, 1, 0]]
  assert _follow(graph, [2, 1, -1], allowed) == [2, 1, 1]


def test_nothing_near_is_nothing():
  graph = graphs.make_graph([(0, 1, 8)], 3)
  assert _follow(graph, [-1, -1, 0]) == [-1, -1, 0]


@hypothesis.given(seed=strategies.integers(0, 50),
                  share=strategies.floats(0, 1))
def test_given_devices_stay_and_others_are_allowed(seed, share):
  graph = graphs.random_graph(seed, 40)
  random = np.random.default_rng(seed)
  given = random.integers(0, 3, graph.num_groups)
  given[random.random(graph.num_groups) < share] = -1
  allowed = random.random((graph.num_groups, 3)) < .7
  found = np.array(_follow(graph, given, allowed))
  np.testing.assert_array_equal(found[given >= 0], given[given >= 0])
  new = (given < 0) & (found >= 0)
  assert allowed[new, found[new]].all()
