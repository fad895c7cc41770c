import numpy as np

from gdp_grappler.graph.structure import label_propagation
from helpers import graphs


def _filled(graph, labels, sources=()):
  there = np.isin(np.arange(graph.num_ops), sources)
  return label_propagation.Inheritance(graph,
                                       there).filled(np.array(labels)).tolist()


def test_labels_go_to_descendants_and_then_to_ancestors():
  assert _filled(graphs.chain(5), [-1, 7, -1, 8, -1]) == [7, 7, 7, 8, 8]


def test_the_producer_that_comes_last_counts():
  # 3 waits for 2, which waits for 1.
  graph = graphs.make_graph([(0, 3, 8), (1, 2, 8), (2, 3, 8)])
  assert _filled(graph, [5, -1, 6, -1])[3] == 6


def test_control_edges_count_where_there_are_no_others():
  graph = graphs.make_graph([(0, 2, 8), (1, 2), (1, 3)])
  assert _filled(graph, [5, 6, -1, -1])[2:] == [5, 6]


def test_nobody_descends_from_sources():
  graph = graphs.make_graph([(0, 1, 8), (1, 2, 8)])
  assert _filled(graph, [5, -1, 6], sources=[0]) == [5, 6, 6]


def test_what_hangs_on_nothing_stays_without_a_label():
  assert _filled(graphs.make_graph([(0, 1, 8)], 3), [4, -1, -1]) == [4, 4, -1]


def test_a_deep_graph():
  assert set(_filled(graphs.chain(3000), [3] + [-1] * 2999)) == {3}


def test_an_empty_graph():
  assert not _filled(graphs.make_graph(), [])
