"""Baselines, priced in both orders."""

import dataclasses

import numpy as np
import pytest

from gdp_grappler import deadlines
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from helpers import graphs
from helpers import orders
from helpers import problems
from placer_model.training import baselines


@pytest.fixture
def problem():
  return problems.make(graphs.random_graph(3, 200), presets.preset('4xP100'))


def _every(problem):
  return [
      baselines.place(name, problem, problem.evaluator, problem.evaluator)
      for name in baselines.NAMES
  ]


def test_every_baseline_has_both_prices(problem):
  results = _every(problem)
  assert [r.placer for r in results] == list(baselines.NAMES)
  for result in results:
    assert result.ordered.step_time_s > 0
    assert result.evaluation == problem.evaluator.evaluate(
        problem.graph, result.placement)
    # On one device there is nothing to order.
    if result.placer == 'single_device':
      assert result.ordered.step_time_s == pytest.approx(
          result.evaluation.step_time_s)
  assert any(r.ordered.step_time_s != r.evaluation.step_time_s for r in results)


def test_the_other_order_is_the_critical_path():
  graph, placement, costs = orders.late_chain(4)
  simulator = simulator_lib.Simulator(placement.cluster, costs)
  result = baselines.in_order(
      graph, simulator, simulator,
      baselines.Result('expert', placement,
                       simulator.evaluate(graph, placement), 1, 0., 0))
  assert result.evaluation.step_time_s == 10.
  assert result.ordered.step_time_s == 6.


def test_no_edges_are_looked_for_when_the_time_is_over():
  """Tables had the step without edges as the ordered step."""
  graph, placement, costs = orders.late_chain(4)
  simulator = simulator_lib.Simulator(placement.cluster, costs)
  result = baselines.in_order(
      graph, simulator, simulator,
      baselines.Result('expert', placement,
                       simulator.evaluate(graph, placement), 1, 0., 0),
      deadlines.within(0.))
  assert result.evaluation.step_time_s == 10. and result.ordered is None


def test_the_origin_of_a_baseline_is_its_placer(problem):
  """Results named no placer: METIS' placement was that of GDP."""
  results = _every(problem)
  rows = np.array([[0, 1], [1, 1], [2, 1]])
  for row, name in zip(rows, baselines.NAMES):
    assert baselines.found_by('baseline', row, rows, results) == name
  assert baselines.found_by('policy', rows[0], rows, results) == 'policy'
  assert baselines.found_by('', None, rows, results) == ''


def test_a_placement_of_no_baseline_has_no_placer(problem):
  """A resumed run named one device if METIS' placement had changed."""
  found = baselines.found_by('baseline', np.array([3, 3]),
                             np.array([[0, 1], [1, 1], [2, 1]]),
                             _every(problem))
  assert found == 'baseline'


def test_what_does_not_run_is_not_ordered(problem):
  tiny = dataclasses.replace(
      problem.cluster, devices=tuple(
          dataclasses.replace(d, memory_bytes=1)
          for d in problem.cluster.devices))
  problem = problems.make(problem.graph, tiny)
  assert all(r.ordered is None for r in _every(problem))


def test_pricing_the_other_order_is_no_search(problem):
  by_name = {r.placer: r for r in _every(problem)}
  assert by_name['random'].evaluations == 1


def test_a_result_has_the_seed_of_its_search(problem):
  """results.json had the run's seed for the best of several searches."""
  found = baselines.place('random', dataclasses.replace(problem, seed=5),
                          problem.evaluator, problem.evaluator)
  assert found.seed == 5


def test_the_best_is_the_fastest_that_is_valid(problem):
  results = _every(problem)
  fastest = min(results, key=lambda r: r.evaluation.step_time_s)
  assert baselines.best(results) is fastest
  broken = dataclasses.replace(
      fastest, evaluation=dataclasses.replace(
          fastest.evaluation,
          violations=(placement_lib.Violation('memory', 'full'),)))
  assert baselines.best([broken, *results]) is fastest
  assert baselines.best([broken]) is broken


def test_the_reference_is_the_best_price(problem):
  results = _every(problem)
  seconds = np.ones((problem.graph.num_ops, 5))
  evaluations = [r.evaluation for r in results]
  assert baselines.reference_s(evaluations, seconds) == min(
      e.step_time_s for e in evaluations if e.valid)
  full = dataclasses.replace(
      evaluations[0], violations=(placement_lib.Violation('memory', 'full'),))
  assert baselines.reference_s([full], seconds) == problem.graph.num_ops
