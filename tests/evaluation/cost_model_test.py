"""Prices of ops that one can work out in the head."""

import numpy as np
import pytest

from gdp_grappler.cluster import presets
from gdp_grappler.evaluation import cost_model
from tests.helpers import clusters
from tests.helpers import graphs

# Devices of the test cluster do 5e8 useful FLOP/s, move 1e9 bytes/s and need
# 1 ms to launch.


def _seconds(**fields):
  graph = graphs.make_graph(num_ops=1, **fields)
  return cost_model.CostModel().op_seconds(graph, clusters.make_cluster())[0]


def test_arithmetic_bounds_dense_ops():
  np.testing.assert_allclose(_seconds(flops=1e9, io_bytes=1e9), 2 + 1e-3)


def test_memory_bounds_the_others():
  np.testing.assert_allclose(_seconds(flops=1e9, io_bytes=3e9), 3 + 1e-3)


def test_every_kernel_is_launched():
  np.testing.assert_allclose(_seconds(), 1e-3)


@pytest.mark.parametrize('op_type', ['Identity', 'ReadVariableOp', 'Const'])
def test_ops_without_a_kernel_are_only_visited(op_type):
  seconds = _seconds(op_types=[op_type], flops=1e12, io_bytes=1e12)
  np.testing.assert_allclose(seconds, 5e-7)


def test_visit_time_can_be_chosen():
  graph = graphs.make_graph(num_ops=2, op_types=['NoOp', 'MatMul'])
  seconds = cost_model.CostModel(visit_s=0.25).op_seconds(
      graph, clusters.make_cluster())
  np.testing.assert_allclose(seconds[:, 0], [0.25, 1e-3])


def test_each_device_has_its_own_figures():
  # 1 TFLOP at 0.5 * 1.16 TFLOP/s on the Broadwell, 0.7 * 9.3 on the P100.
  graph = graphs.make_graph(num_ops=1, flops=1e12)
  seconds = cost_model.CostModel().op_seconds(graph, presets.preset('2xP100'))
  np.testing.assert_allclose(
      seconds[0], [1 / 0.58 + 2e-6, 1 / 6.51 + 5e-6, 1 / 6.51 + 5e-6])


def test_shape_of_an_empty_graph():
  graph = graphs.make_graph(num_ops=0)
  assert cost_model.CostModel().op_seconds(
      graph, clusters.make_cluster()).shape == (0, 3)
