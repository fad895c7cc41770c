"""What callers may expect of every evaluator.

A new evaluator joins by a line in `_EVALUATORS`.
"""

import math
from typing import Callable

import numpy as np
import pytest

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.graph import op_graph
from helpers import clusters
from helpers import graphs

_SIMULATED = 'simulator'
# Name -> (from a cluster, a graph that it can price).
_EVALUATORS: dict[str,
                  tuple[Callable[[cluster_lib.Cluster],
                                 evaluator_lib.Evaluator],
                        Callable[[], op_graph.OpGraph]]] = {
                            _SIMULATED: (simulator.Simulator,
                                         lambda: graphs.random_graph(5, 60)),
                        }


@pytest.fixture(name='case', params=_EVALUATORS)
def _case(request):
  make, graph = _EVALUATORS[request.param]
  cluster = clusters.make_cluster()
  return request.param, make(cluster), graph(), cluster


def _legal(graph, count, num_devices=3):
  rng = np.random.default_rng(0)
  return rng.integers(0, num_devices, (count, graph.num_groups))[:,
                                                                 graph.groups]


def test_legal_placement_has_a_finite_price(case):
  _, evaluator, graph, cluster = case
  for devices in _legal(graph, 3):
    evaluation = evaluator.evaluate(graph,
                                    placement_lib.Placement(devices, cluster))
    assert evaluation.valid
    assert 0 < evaluation.step_time_s < math.inf
    assert len(evaluation.peak_bytes) == len(cluster.pool_bytes)
    assert all(isinstance(b, int) and b >= 0 for b in evaluation.peak_bytes)


def test_says_whether_it_is_simulated(case):
  name, evaluator, graph, cluster = case
  evaluation = evaluator.evaluate(
      graph, placement_lib.Placement(_legal(graph, 1)[0], cluster))
  assert evaluation.simulated == (name == _SIMULATED)


def test_broken_rules_are_those_of_the_placement(case):
  _, evaluator, graph, cluster = case
  devices = _legal(graph, 1)[0].copy()
  shared = np.flatnonzero(np.bincount(graph.groups) > 1)[0]
  op = np.flatnonzero(graph.groups == shared)[0]
  devices[op] = (devices[op] + 1) % 3
  placement = placement_lib.Placement(devices, cluster)
  evaluation = evaluator.evaluate(graph, placement)
  assert not evaluation.valid
  assert evaluation.step_time_s == math.inf
  assert evaluation.violations == placement.violations(graph)


def test_wrong_number_of_devices_is_a_violation(case):
  _, evaluator, graph, cluster = case
  evaluation = evaluator.evaluate(graph, placement_lib.Placement([0], cluster))
  assert [v.kind for v in evaluation.violations] == ['shape']


def test_many_are_priced_in_their_order(case):
  name, evaluator, graph, cluster = case
  devices = _legal(graph, 4)
  devices[2, :] = 7
  many = evaluator.evaluate_many(graph, devices)
  assert [e.valid for e in many] == [True, True, False, True]
  if name == _SIMULATED:
    assert list(many) == [
        evaluator.evaluate(graph, placement_lib.Placement(row, cluster))
        for row in devices
    ]


def test_order_of_many_is_that_of_each(case):
  name, evaluator, graph, cluster = case
  devices = _legal(graph, 3)
  priorities = np.random.default_rng(1).normal(size=devices.shape)
  many = evaluator.evaluate_many(graph, devices, priorities)
  assert all(e.valid for e in many)
  if name == _SIMULATED:
    assert list(many) == [
        evaluator.evaluate(graph, placement_lib.Placement(row, cluster, order))
        for row, order in zip(devices, priorities)
    ]
    assert list(many) != evaluator.evaluate_many(graph, devices)


def test_many_of_the_wrong_shape(case):
  _, evaluator, graph, _ = case
  with pytest.raises(ValueError):
    evaluator.evaluate_many(graph, _legal(graph, 2)[:, 1:])


@pytest.mark.parametrize(
    'priorities', [np.zeros((2, 3)), np.full((2, 60), np.nan)])
def test_order_of_the_wrong_shape_or_without_numbers(case, priorities):
  name, evaluator, graph, _ = case
  if name == _SIMULATED:
    with pytest.raises(ValueError, match='priorit'):
      evaluator.evaluate_many(graph, _legal(graph, 2), priorities)
