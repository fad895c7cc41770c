import numpy as np

from gdp_grappler.placers.search import priced_placements
from helpers import clusters
from helpers import graphs
from helpers import problems


def _found(**fields):
  graph = graphs.make_graph(num_ops=2, param_bytes=80)
  cluster = clusters.make_cluster(2, memory_bytes=100)
  problem = problems.make(graph, cluster, [[9, 1, 2], [9, 1, 2]], **fields)
  return priced_placements.PricedPlacements(problem.graph,
                                            problem.evaluator), problem


def test_what_fits_is_best_and_what_is_faster_lacks_memory():
  seen, _ = _found()
  prices = seen.add(np.array([[1, 1], [2, 2]]))
  assert not seen.fits and not seen.fastest_fits
  assert prices.seconds.tolist() == [2, 4]
  seen.add([np.array([0, 2])])
  assert seen.fits and not seen.fastest_fits
  assert seen.best.tolist() == [0, 2]
  # Both placements are faster; [1, 1] is the fastest.
  assert seen.faster_overflowing(1).tolist() == [[1, 1]]
  assert seen.faster_overflowing(2).tolist() == [[1, 1], [2, 2]]
  seen.add([np.array([1, 2])])
  assert seen.best.tolist() == [1, 2] and seen.fastest_fits
  assert seen.faster_overflowing(9).shape == (0, 2)


def test_varied_placements_differ_in_many_groups():
  graph = graphs.make_graph(num_ops=10)
  problem = problems.make(graph, clusters.make_cluster(2), [[0, 1, 3]] * 10)
  seen = priced_placements.PricedPlacements(problem.graph, problem.evaluator)
  # The first two groups are always on the host, so they do not count.
  rows = np.array([[0, 0] + [1] * 8, [0, 0, 2] + [1] * 7, [0, 0] + [2] * 8])
  assert list(seen.add(rows).ranking()) == [1, 0, 2]
  first, near, far = rows[[1, 0, 2]].tolist()
  assert seen.varied(3, 1 / 8).tolist() == [first, near, far]
  assert seen.varied(3, 1 / 4).tolist() == [first, far]
  assert seen.varied(1, 1 / 4).tolist() == [first]
  assert seen.varied(3, 1.).tolist() == [first]


def test_the_best_of_different_sources_differ():
  graph = graphs.make_graph(num_ops=10)
  problem = problems.make(graph, clusters.make_cluster(2), [[9, 1, 3]] * 10)
  seen = priced_placements.PricedPlacements(problem.graph, problem.evaluator)
  rows = np.array([[1] * 10, [2] + [1] * 9, [2] * 10, [2, 2] + [1] * 8])
  seen.add(rows, ('maps', 'maps', 'cuts', 'schedules'))
  first, second, third = (seen.ranked(4)[k].tolist() for k in (0, 1, 3))
  assert [first, second, third] == rows[[3, 1, 2]].tolist()
  assert seen.varied_sources(4, 1 / 20).tolist() == [first, second, third]
  assert seen.varied_sources(2, 1 / 20).tolist() == [first, second]
  assert seen.varied_sources(4, 1 / 5).tolist() == [first, third]


def test_nothing_is_priced_twice():
  asked = []

  class Counting:

    def __init__(self, evaluator):
      self._evaluator = evaluator

    def __getattr__(self, name):
      return getattr(self._evaluator, name)

    def price_groups(self, graph, devices, ceiling_s):
      asked.append(len(devices))
      return self._evaluator.price_groups(graph, devices, ceiling_s)

  seen, _ = _found(wrap=Counting)
  rows = np.array([[1, 1], [1, 2], [1, 1]])
  first = seen.add(rows)
  assert first.seconds.tolist() == [2, 2, 2]
  again = seen.add(rows[1:])
  assert asked == [2]
  assert again.overflow_bytes.tolist() == [0, 60]
  assert len(seen.add([])) == 0


def test_what_was_seen_is_known_and_ranked():
  seen, _ = _found()
  rows = np.array([[1, 1], [1, 2], [0, 2]])
  seen.add(rows)
  assert seen.contains(rows[1]) and not seen.contains(np.array([2, 1]))
  assert seen.devices.tolist() == rows.tolist()
  # The first placement does not fit.
  assert seen.ranked(2).tolist() == [[1, 2], [0, 2]]
  assert seen.ranked(9).tolist() == [[1, 2], [0, 2], [1, 1]]


def test_fresh_ones_are_not_known_and_none_is_there_twice():
  seen, _ = _found()
  seen.add(np.array([[1, 1]]))
  rows = np.array([[1, 2], [1, 1], [2, 1], [2, 2], [1, 2]], np.int32)
  # The index of the first of equal rows, in the place of the last one.
  assert seen.unpriced(rows) == [2, 3, 0]
  assert seen.unpriced(rows[:0]) == []


def test_the_ceiling_is_the_worst_of_the_best_that_fit():
  seen, _ = _found()
  assert seen.ceiling_s(1) == np.inf
  seen.add(np.array([[1, 1], [1, 2]]))
  # The first placement does not fit.
  assert seen.ceiling_s(1) == 2 and seen.ceiling_s(2) == np.inf
  seen.add(np.array([[2, 2], [0, 2]]))
  best = seen.prices[np.array(seen.prices.ranking())]
  assert [seen.ceiling_s(n) for n in (1, 2)] == best.seconds[:2].tolist()


def test_each_placement_has_the_source_that_found_it_first():
  seen, _ = _found()
  seen.add(np.array([[1, 1], [1, 2]]), 'first')
  seen.add(np.array([[1, 2], [2, 2], [0, 2]]), 'second')
  assert seen.sources == ('first', 'first', 'second', 'second')
  best = {name: row.tolist() for name, row in seen.best_of_each().items()}
  assert list(best.items()) == [('first', [1, 2]), ('second', [0, 2])]


def test_what_others_have_priced_is_taken_without_a_price():
  asked = []
  seen, problem = _found()
  others = priced_placements.PricedPlacements(problem.graph, problem.evaluator)
  seen.add(np.array([[1, 2]]), 'own')
  others.add(np.array([[1, 2], [2, 2], [2, 1]]), ('', '', 'map'))
  problem.evaluator.price_groups = lambda *_: asked.append(1)
  seen.add_priced(others, 'theirs')
  assert not asked and seen.sources == ('own', 'theirs', 'map')
  assert seen.prices.seconds.tolist() == [2, 4, 2]
  seen.add_priced(others, 'theirs')
  assert len(seen.prices) == 3


def test_only_what_is_better_than_all_is_added_if_best():
  seen, _ = _found()
  seen.add([np.array([1, 1]), np.array([2, 2])], 'one')  # Both overflow.
  seen.add_if_best(np.array([1, 2]), 'two')  # It fits, in 2 s.
  assert seen.sources == ('one', 'one', 'two') and seen.fits
  seen.add_if_best(np.array([0, 2]), 'three')  # 9 s.
  seen.add_if_best(np.array([1, 2]), 'four')
  assert seen.sources == ('one', 'one', 'two')
  assert seen.contains(np.array([1, 2])) and not seen.contains(np.array([0, 2]))
