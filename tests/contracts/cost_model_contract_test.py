"""Tests that every cost model has to pass.

A new cost model needs a line in `_MODELS`.
"""

import dataclasses
from typing import Callable

import numpy as np
import pytest

from gdp_grappler.cluster import calibrated
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.costs import calibrated_costs
from gdp_grappler.evaluation.costs import cost_model
from gdp_grappler.evaluation.costs import given_costs
from gdp_grappler.evaluation.costs import profiled_costs
from gdp_grappler.evaluation.costs import roofline
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.graph import op_graph
from gdp_grappler.graph.costed import given
from helpers import calibrations
from helpers import clusters
from helpers import graphs
from helpers import profiles

_CLUSTERS = (clusters.make_cluster(), presets.preset('2xP100'),
             dataclasses.replace(
                 calibrated.applied(
                     presets.preset('2xP100'),
                     calibrations.make(
                         'Tesla P100-PCIE-16GB',
                         kernels=(('MatMul', 1e6, 1e5, 1e-5),
                                  ('MatMul', 1e9, 1e7, 1e-3), ('Relu', 1e6, 1e7,
                                                               1e-4)))),
                 name='calibrated'))


def _given(graph: op_graph.OpGraph) -> cost_model.CostModel:
  n = graph.num_ops
  return given_costs.GivenCostModel(
      given.GivenCosts('made up', graph.names,
                       {'GPU': np.linspace(1., 2., n), 'CPU': np.full(n, 3.)},
                       np.arange(n)))


def _profiled(graph: op_graph.OpGraph) -> cost_model.CostModel:
  seconds = np.linspace(1e-3, 2e-3, graph.num_ops)
  return profiled_costs.ProfiledCostModel(
      profiles.of_graph(graph, seconds, bus='bus', contention=.5))


_MODELS: dict[str, Callable[[op_graph.OpGraph], cost_model.CostModel]] = {
    'roofline': lambda _: roofline.Roofline(),
    'calibrated': lambda _: calibrated_costs.CalibratedCostModel(),
    'profiled': _profiled,
    'given': _given,
}


@pytest.fixture(name='graph')
def _graph():
  graph = graphs.random_graph(5, 40)
  return graph.replace(op_types=['Conv2D', 'MatMul', 'Relu', 'Const'] * 10,
                       flops=np.arange(40.) * 1e6,
                       io_bytes=np.arange(40.) * 1e3)


@pytest.fixture(name='costs', params=_MODELS)
def _costs(request, graph):
  return _MODELS[request.param](graph)


@pytest.fixture(name='cluster', params=_CLUSTERS, ids=lambda c: c.name)
def _cluster(request):
  return request.param


def test_seconds_of_every_op_on_every_device(costs, graph, cluster):
  seconds = costs.op_seconds(graph, cluster)
  assert seconds.shape == (graph.num_ops, cluster.num_devices)
  assert seconds.dtype == np.float64
  assert np.isfinite(seconds).all() and (seconds >= 0).all()


def test_workspace_of_every_op_on_every_device(costs, graph, cluster):
  workspace = costs.workspace_bytes(graph, cluster)
  assert workspace.shape == (graph.num_ops, cluster.num_devices)
  assert workspace.dtype == np.int64 and (workspace >= 0).all()


def test_contention_of_every_device(costs, cluster):
  contention = costs.contention(cluster)
  assert contention.buses.shape == (cluster.num_devices,)
  assert contention.shares.shape == (cluster.num_devices,)
  assert (contention.shares >= 0).all()


def test_asked_again_it_says_the_same(costs, graph, cluster):
  np.testing.assert_array_equal(costs.op_seconds(graph, cluster),
                                costs.op_seconds(graph, cluster))
  np.testing.assert_array_equal(costs.workspace_bytes(graph, cluster),
                                costs.workspace_bytes(graph, cluster))


def test_what_it_returns_is_the_callers_to_change(costs, graph, cluster):
  for compute in (costs.op_seconds, costs.workspace_bytes):
    before = compute(graph, cluster).copy()
    compute(graph, cluster)[:] = 7
    np.testing.assert_array_equal(compute(graph, cluster), before)


def test_a_part_of_the_graph_costs_what_it_did(costs, graph, cluster):
  """Cost models look ops up by name, so an op keeps its seconds in a part."""
  kept = np.flatnonzero(np.isin(np.arange(40), graph.edges.ravel()))[:5]
  part = graphs.make_graph(num_ops=len(kept),
                           names=[graph.names[i] for i in kept],
                           op_types=[graph.op_types[i] for i in kept],
                           flops=graph.flops[kept],
                           io_bytes=graph.io_bytes[kept])
  np.testing.assert_allclose(costs.op_seconds(part, cluster),
                             costs.op_seconds(graph, cluster)[kept])


def test_a_simulator_can_charge_it(costs, graph, cluster):
  priced = simulator.Simulator(cluster, costs)
  np.testing.assert_array_equal(priced.op_seconds(graph),
                                costs.op_seconds(graph, cluster))
  assert np.isfinite(
      priced.price(graph, np.ones((1, graph.num_ops), int)).seconds).all()
