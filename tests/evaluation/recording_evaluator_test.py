import numpy as np
import pytest

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import recording_evaluator
from gdp_grappler.evaluation import robust_evaluator
from gdp_grappler.evaluation.simulation import simulator
from helpers import clusters
from helpers import graphs
from helpers import stopwatches

_CLUSTER = clusters.make_cluster(2, memory_bytes=1000)
# One op: 9, 5 or 3 seconds, and too large for nothing.
_GRAPH = graphs.make_graph(num_ops=1)


def _simulator(seconds=((9, 5, 3),), workspace=0):
  return simulator.Simulator(_CLUSTER, clusters.FixedCosts(seconds, workspace))


class _Clock:
  """Each look at it takes a second."""

  def __init__(self):
    self.now = 100.

  def __call__(self):
    self.now += 1
    return self.now


def _placed(device):
  return placement_lib.Placement([device], _CLUSTER)


def test_the_curve_holds_every_call_that_found_better():
  recorded = recording_evaluator.Recorder(_simulator(), clock=_Clock())
  recorded.evaluate(_GRAPH, _placed(0))
  recorded.evaluate(_GRAPH, _placed(0))
  recorded.price_groups(_GRAPH, np.array([[0], [1], [0]]))
  recorded.price(_GRAPH, np.array([[0], [1], [2], [2]]))
  assert recorded.curve == [(1, 1., 9.), (4, 2., 5.), (8, 3., 3.)]
  assert recorded.evaluations == 9
  assert recorded.best_placement.devices.tolist() == [2]
  assert recorded.best_step_time_s == 3.


def test_answers_are_passed_on():
  inner = stopwatches.Stopwatch(_simulator())
  recorded = recording_evaluator.Recorder(inner)
  devices = np.array([[0], [1]])
  assert recorded.evaluate(_GRAPH,
                           _placed(1)) == inner.evaluate(_GRAPH, _placed(1))
  np.testing.assert_array_equal(
      recorded.price(_GRAPH, devices).seconds,
      inner.price(_GRAPH, devices).seconds)
  np.testing.assert_array_equal(recorded.op_seconds(_GRAPH),
                                inner.op_seconds(_GRAPH))
  assert recorded.cluster is inner.cluster and not recorded.simulated


@pytest.mark.parametrize('how', ['evaluate', 'price', 'price_groups'])
def test_what_overflows_is_not_best(how):
  # On GPU:1 the op would be fast, but needs more than there is.
  recorded = recording_evaluator.Recorder(_simulator(workspace=[[0, 0, 1001]]))
  for device in (2, 1):
    if how == 'evaluate':
      recorded.evaluate(_GRAPH, _placed(device))
    else:
      getattr(recorded, how)(_GRAPH, np.array([[device]]))
  assert [(n, s) for n, _, s in recorded.curve] == [(2, 5.)]
  assert recorded.best_placement.devices.tolist() == [1]


def test_rules_that_are_broken_count_but_do_not_win():
  graph = graphs.make_graph(num_ops=1, pins=['GPU:0'])
  recorded = recording_evaluator.Recorder(_simulator())
  recorded.price(graph, np.array([[2], [0]]))
  recorded.evaluate(graph, _placed(2))
  assert recorded.evaluations == 3 and recorded.curve == []
  assert recorded.best_placement is None
  assert recorded.best_step_time_s == float('inf')


@pytest.mark.parametrize('priorities', [[[1.], [2.]], [2.]])
def test_the_best_keeps_its_priorities(priorities):
  recorded = recording_evaluator.Recorder(_simulator())
  recorded.price(_GRAPH, np.array([[0], [1]]), np.array(priorities))
  assert recorded.best_placement.priorities.tolist() == [2.]


def test_no_placements_at_all():
  recorded = recording_evaluator.Recorder(_simulator())
  recorded.price(_GRAPH, np.zeros((0, 1), int))
  assert recorded.evaluations == 0 and recorded.curve == []


def test_seconds_since_it_was_made():
  assert recording_evaluator.Recorder(_simulator(),
                                      clock=_Clock()).seconds == 1.


def test_a_step_above_its_ceiling_is_no_best_placement():
  """It was broken off before it overflowed the memory."""
  edges = [(a, b, 100) for a, b in ((0, 1), (1, 2), (2, 3), (0, 3), (1, 3))]
  graph = graphs.make_graph(edges)
  cluster = clusters.make_cluster(1, memory_bytes=250)
  for wrap in (lambda plain: plain), robust_evaluator.Robust:
    recorded = recording_evaluator.Recorder(
        wrap(simulator.Simulator(cluster, clusters.FixedCosts(1.))))
    prices = recorded.price_groups(graph, np.ones((1, 4), int), .5)
    assert prices.seconds[0] > .5 and not prices.valid[0]
    assert recorded.best_placement is None and not recorded.curve
    assert recorded.evaluations == 1
