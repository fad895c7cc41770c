"""Tests of gdp_grappler.evaluation.deadline_evaluator."""

from __future__ import annotations

import numpy as np

from gdp_grappler import deadlines
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import deadline_evaluator
from gdp_grappler.evaluation.simulation import simulator
from helpers import clusters
from helpers import graphs

_GRAPH = graphs.random_graph(0, 8)


def _until(
    left_s: float) -> tuple[deadline_evaluator.DeadlineEvaluator, list[float]]:
  now = [0.]
  priced = simulator.Simulator(clusters.make_cluster(2))
  return deadline_evaluator.DeadlineEvaluator(
      priced, deadlines.within(left_s, lambda: now[0])), now


def _rows(count: int) -> np.ndarray:
  return np.random.default_rng(0).integers(0, 2, (count, _GRAPH.num_ops))


def test_in_time_it_says_what_the_other_says():
  evaluator, _ = _until(1.)
  rows = _rows(4)
  found = evaluator.price(_GRAPH, rows)
  plain = simulator.Simulator(evaluator.cluster).price(_GRAPH, rows)
  np.testing.assert_array_equal(found.seconds, plain.seconds)
  assert evaluator.skipped == 0


def test_late_placements_are_not_priced_but_known_ones_are():
  evaluator, now = _until(1.)
  rows = _rows(3)
  known = evaluator.price(_GRAPH, rows[:1]).seconds[0]
  now[0] = 2.
  late = evaluator.price(_GRAPH, rows)
  assert late.seconds.tolist() == [known, np.inf, np.inf]
  assert evaluator.skipped == 2
  violation, = evaluator.evaluate(
      _GRAPH, placement_lib.Placement(rows[1], evaluator.cluster)).violations
  assert (violation.kind, violation.message) == ('run',
                                                 deadline_evaluator.NOT_RUN)


def test_the_first_one_is_always_priced():
  evaluator, _ = _until(0.)
  assert np.isfinite(evaluator.price(
      _GRAPH, _rows(2)).seconds).tolist() == [True, False]


def test_an_order_makes_another_placement():
  evaluator, now = _until(1.)
  rows = _rows(1)
  evaluator.price(_GRAPH, rows)
  now[0] = 2.
  late = evaluator.price(_GRAPH, rows, np.arange(float(_GRAPH.num_ops)))
  assert np.isinf(late.seconds).all()
