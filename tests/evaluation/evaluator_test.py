import numpy as np
import pytest

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator
from gdp_grappler.evaluation.simulation import simulator
from helpers import clusters
from helpers import graphs

_ROOM = np.array([100, 10])


def _prices(*rows):
  """Of rows of seconds and the peaks of two memories."""
  seconds, first, second = np.array(rows, float).T
  return evaluator.Prices.from_peaks(
      seconds,
      np.stack([first, second], 1).astype(np.int64), _ROOM)


def test_what_is_over_in_any_memory_overflows():
  prices = _prices([1, 100, 10], [1, 103, 0], [1, 101, 15], [np.inf, 0, 0])
  assert prices.overflow_bytes.tolist() == [0, 3, 6, 0]
  assert prices.valid.tolist() == [True, False, False, False]
  assert prices.valid_seconds.tolist() == [1, np.inf, np.inf, np.inf]


def test_valid_first_then_least_overflow_then_fastest_then_first():
  prices = _prices([np.inf, 0, 0], [1, 105, 0], [2, 102, 0], [1, 101, 11],
                   [9, 0, 0], [8, 0, 0], [8, 50, 5])
  assert prices.ranking() == [5, 6, 4, 3, 2, 1, 0]
  assert prices.best() == 5


def test_keys_compare_across_prices():
  fits, overflows = _prices([9, 0, 0]), _prices([1, 200, 0])
  assert fits.keys()[0] < overflows.keys()[0]


def test_what_ran_is_valid_whatever_its_peaks():
  bad = placement_lib.Violation('run', 'x')
  prices = evaluator.Prices.from_evaluations([
      evaluator.Evaluation(3., (500, 0), (), False),
      evaluator.Evaluation(4., (0, 0), (), False),
      evaluator.Evaluation(np.inf, (0, 0), (bad,), False)
  ], _ROOM)
  assert prices.valid.tolist() == [True, True, False]
  assert prices.overflow_bytes.tolist() == [0, 0, 0]
  assert prices.best() == 0 and prices.ranking() == [0, 1, 2]


def test_some_and_more_of_them():
  prices = _prices([1, 0, 0], [2, 200, 0], [3, 0, 0])
  some = prices[np.array([2, 1])]
  assert some.seconds.tolist() == [3, 2] and some.best() == 0
  both = some.followed_by(prices)
  assert both.seconds.tolist() == [3, 2, 1, 2, 3] and both.best() == 2
  assert both.peak_bytes.shape == (5, 2)


def test_no_placements_have_no_best():
  none = evaluator.Prices.from_evaluations((), _ROOM)
  assert len(none) == 0 and none.ranking() == []
  assert none.peak_bytes.shape == (0, 2)
  with pytest.raises(ValueError):
    none.best()


def test_a_wrapper_passes_on_what_is_thought_of_ops():
  graph, cluster = graphs.random_graph(0, 20), clusters.make_cluster(2)
  prices = simulator.Simulator(cluster)
  wrapper = evaluator.Wrapper(prices)
  assert wrapper.cluster is cluster and wrapper.simulated
  assert wrapper.costs(graph) is prices.costs(graph)
  assert (wrapper.op_seconds(graph) == prices.op_seconds(graph)).all()
