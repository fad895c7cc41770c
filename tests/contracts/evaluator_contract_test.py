"""Tests that every evaluator has to pass, by itself and within a recorder.

A new evaluator needs a line in `_MAKERS`.
"""

import math
from typing import Callable

import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler import errors
from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.evaluation import recording_evaluator
from gdp_grappler.evaluation import robust_evaluator
from gdp_grappler.evaluation.emulation import emulator as emulator_lib
from gdp_grappler.evaluation.measuring import bench
from gdp_grappler.evaluation.measuring import measurer
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.processes import worker_process
from helpers import clusters
from helpers import measured
from helpers import stopwatches

# Functions from a source and a cluster to an evaluator.
_MAKERS: dict[str, Callable[..., evaluator_lib.Evaluator]] = {
    'simulator':
        lambda source, cluster: simulator.Simulator(cluster),
    'robust':
        lambda source, cluster: robust_evaluator.Robust(
            simulator.Simulator(cluster)),
    'measurer':
        measurer.Measurer,
    'emulator':
        lambda source, cluster: emulator_lib.Emulator(cluster),
}
_CLUSTER = clusters.make_cluster()


def _step():
  """Makes two variables, each in its own group, and their product."""
  v1 = tf.compat.v1
  first, second = (
      v1.get_variable(name, (8, 8), use_resource=True) for name in 'ab')
  product = first.read_value() @ second.read_value()
  with tf.control_dependencies([first.assign_add(product).op]):
    return tf.identity(product + product, name='y')


@pytest.fixture(name='built', scope='module')
def _built():
  """Returns a source and its graph."""
  return measured.build(_step)


@pytest.fixture(name='graph')
def _graph(built):
  return built[1]


@pytest.fixture(
    name='evaluator',
    params=[(name, recorded) for name in _MAKERS for recorded in (False, True)],
    ids=lambda p: 'recorded ' * p[1] + p[0])
def _evaluator(request, built, monkeypatch):
  monkeypatch.setattr(bench, 'Bench', stopwatches.FakeBench)
  monkeypatch.setattr(worker_process, 'WorkerProcess',
                      stopwatches.FakeEmulation)
  name, recorded = request.param
  evaluator = _MAKERS[name](built[0], _CLUSTER)
  return recording_evaluator.Recorder(evaluator) if recorded else evaluator


def _by_group(graph, count, seed=0):
  """Returns random legal devices of groups, int [K, G]."""
  rng = np.random.default_rng(seed)
  allowed = constraints.allowed_devices(graph, _CLUSTER)
  allowed[:, 2] &= not allowed[:, :2].any(axis=1).all()
  return np.array([
      [rng.choice(np.flatnonzero(row)) for row in allowed] for _ in range(count)
  ])


def _legal(graph, count):
  """Returns random legal devices of ops, int [K, N]."""
  return _by_group(graph, count)[:, graph.groups]


def _placed(devices, priorities=None):
  return placement_lib.Placement(devices, _CLUSTER, priorities)


def test_prices_are_for_its_cluster(evaluator):
  assert evaluator.cluster is _CLUSTER


def test_op_seconds_are_of_every_op_and_device(evaluator, graph):
  seconds = evaluator.op_seconds(graph)
  assert seconds.shape == (graph.num_ops, _CLUSTER.num_devices)
  assert (seconds >= 0).all() and np.isfinite(seconds).all()
  np.testing.assert_array_equal(seconds, evaluator.op_seconds(graph))


def test_legal_placement_has_a_finite_price(evaluator, graph):
  for devices in _legal(graph, 3):
    evaluation = evaluator.evaluate(graph, _placed(devices))
    assert evaluation.valid
    assert 0 < evaluation.step_time_s < math.inf
    assert len(evaluation.peak_bytes) == len(_CLUSTER.pool_bytes)
    assert all(isinstance(b, int) and b >= 0 for b in evaluation.peak_bytes)


def test_says_whether_it_is_simulated(evaluator, graph):
  evaluation = evaluator.evaluate(graph, _placed(_legal(graph, 1)[0]))
  assert evaluation.simulated is evaluator.simulated


def test_broken_rules_are_those_of_the_placement(evaluator, graph):
  devices = _legal(graph, 1)[0].copy()
  shared = np.flatnonzero(np.bincount(graph.groups) > 1)[0]
  op = np.flatnonzero(graph.groups == shared)[0]
  devices[op] = (devices[op] + 1) % 3
  placement = _placed(devices)
  evaluation = evaluator.evaluate(graph, placement)
  assert not evaluation.valid
  assert evaluation.step_time_s == math.inf
  assert evaluation.violations == placement.violations(graph)


def test_wrong_number_of_devices_is_a_violation(evaluator, graph):
  evaluation = evaluator.evaluate(graph, _placed([0]))
  assert [v.kind for v in evaluation.violations] == ['shape']


def test_another_cluster_is_refused(evaluator, graph):
  other = placement_lib.Placement(np.zeros(graph.num_ops, int),
                                  clusters.make_cluster(1))
  with pytest.raises((ValueError, errors.MeasurementError), match='"test"'):
    evaluator.evaluate(graph, other)


def test_prices_have_shapes_and_agree_with_themselves(evaluator, graph):
  devices = _legal(graph, 4)
  devices[2, :] = 7
  prices = evaluator.price(graph, devices)
  assert len(prices) == 4
  assert prices.seconds.shape == prices.valid.shape == (4,)
  assert prices.overflow_bytes.shape == (4,)
  assert prices.peak_bytes.shape == (4, len(_CLUSTER.pool_bytes))
  assert prices.valid.tolist() == [True, True, False, True]
  assert np.isinf(prices.seconds[2]) and prices.ranking()[-1] == 2
  assert not prices.overflow_bytes[prices.valid].any()
  assert prices.valid[prices.best()]


@pytest.mark.parametrize('ordered', [False, True])
def test_many_are_priced_as_each(evaluator, graph, ordered):
  devices = _legal(graph, 3)
  priorities = (np.random.default_rng(1).normal(
      size=devices.shape) if ordered else None)
  prices = evaluator.price(graph, devices, priorities)
  for k, row in enumerate(devices):
    evaluation = evaluator.evaluate(
        graph, _placed(row, None if priorities is None else priorities[k]))
    assert evaluation.step_time_s == prices.seconds[k]
    assert evaluation.peak_bytes == tuple(prices.peak_bytes[k].tolist())
    assert evaluation.valid == prices.valid[k]


def test_one_order_may_be_for_all(evaluator, graph):
  devices = _legal(graph, 3)
  order = np.random.default_rng(1).normal(size=graph.num_ops)
  np.testing.assert_array_equal(
      evaluator.price(graph, devices, order).seconds,
      evaluator.price(graph, devices, np.stack([order] * 3)).seconds)


def test_groups_are_priced_as_their_ops(evaluator, graph):
  by_group = _by_group(graph, 3)
  np.testing.assert_array_equal(
      evaluator.price_groups(graph, by_group).seconds,
      evaluator.price(graph, by_group[:, graph.groups]).seconds)


def test_no_placements_have_no_prices(evaluator, graph):
  prices = evaluator.price(graph, np.zeros((0, graph.num_ops), int))
  assert len(prices) == 0
  assert prices.peak_bytes.shape == (0, len(_CLUSTER.pool_bytes))


def test_many_of_the_wrong_shape(evaluator, graph):
  with pytest.raises(ValueError):
    evaluator.price(graph, _legal(graph, 2)[:, 1:])


def test_order_of_the_wrong_shape(evaluator, graph):
  with pytest.raises(ValueError):
    evaluator.price(graph, _legal(graph, 2), np.zeros((2, 3)))


def test_order_without_numbers(evaluator, graph):
  with pytest.raises(ValueError, match='priorit'):
    evaluator.price(graph, _legal(graph, 2), np.full((2, graph.num_ops),
                                                     np.nan))
