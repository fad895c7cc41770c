import dataclasses

import numpy as np
import pytest

from gdp_grappler.cluster import calibrated
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.costs import calibrated_costs
from gdp_grappler.evaluation.costs import roofline
from gdp_grappler.evaluation.simulation import simulator
from helpers import calibrations
from helpers import graphs

# Twice as long as by the roofline where it is large, and no shorter than 10 us.
_SIZES = ((1e3, 1e3, 1e-5), (1e9, 1e6, 1e-4), (1e12, 1e9, 2e-2))


def _cluster(kernels, **figures):
  figures = figures or {'launching_op_s': 5e-6}
  made = calibrations.make(kernels=kernels, **figures)
  # Without a gap, so that seconds are what was measured.
  plain = presets.preset('1xH100')
  plain = dataclasses.replace(
      plain,
      devices=tuple(dataclasses.replace(d, gap_s=0.) for d in plain.devices))
  return calibrated.applied(plain, made)


def _seconds(cluster, op_types, flops, io_bytes):
  return calibrated_costs.CalibratedCostModel().seconds(
      op_types, np.asarray(flops, float), np.asarray(io_bytes, float),
      cluster)[:, 1]


def test_measured_sizes_take_what_they_took():
  cluster = _cluster(tuple(('MatMul', *size) for size in _SIZES))
  flops, io_bytes, seconds = np.array(_SIZES).T
  np.testing.assert_allclose(_seconds(cluster, ['MatMul'] * 3, flops, io_bytes),
                             seconds)


def test_a_measured_slowdown_also_holds_for_other_types():
  """A calibration gave products of float16 the seconds of float32."""
  cluster = _cluster(tuple(('MatMul', *size) for size in _SIZES))
  graph = graphs.make_graph(num_ops=2, flops=1e12, io_bytes=1e9)
  graph = graph.replace(element_types_by_name={graph.names[1]: 'float16'})
  single, half = calibrated_costs.CalibratedCostModel().op_seconds(
      graph, cluster)[:, 1]
  assert half == pytest.approx(single / 2, rel=.01)


def test_between_two_sizes_it_is_a_line_of_the_logarithms():
  """Three sizes of a copy, twice, four times and twice the roofline's."""
  bandwidth = presets.preset('1xH100').devices[1].bandwidth_bytes_per_s
  share = .8  # Of movement; the ratios, not the seconds, are what counts.
  sizes = [1e6, 1e8, 1e10]
  ideal = np.array(sizes) / bandwidth / share
  kernels = tuple(
      ('Slice', 0., size, k * s) for size, k, s in zip(sizes, (2, 4, 2), ideal))
  found = _seconds(_cluster(kernels), ['Slice'] * 2, [0., 0.], [1e7, 1e9])
  np.testing.assert_allclose(found,
                             np.array([1e7, 1e9]) / bandwidth / share * 8**.5,
                             rtol=1e-6)


def test_beyond_the_largest_the_share_stays_and_below_the_smallest_the_seconds(
):
  cluster = _cluster(tuple(('MatMul', *size) for size in _SIZES))
  large, small = _seconds(cluster, ['MatMul'] * 2, [8e12, 1.], [8e9, 1.])
  assert large == pytest.approx(8 * 2e-2, rel=.05)
  assert small == pytest.approx(1e-5, rel=.05)


def test_a_type_of_a_measured_family_is_priced_by_the_family():
  cluster = _cluster((('Mul', 1e6, 1e9, 1e-2),))
  assert _seconds(cluster, ['AddV2'], [1e6], [1e9])[0] == pytest.approx(1e-2)


def test_a_family_that_was_not_measured_is_on_the_roofline():
  cluster = _cluster((('Mul', 1e6, 1e9, 1e-2),))
  graph = graphs.make_graph(num_ops=2, op_types=['TopKV2', 'Mul'], flops=1e6,
                            io_bytes=1e9)
  by_roofline = roofline.Roofline().op_seconds(graph, cluster)
  found = calibrated_costs.CalibratedCostModel().op_seconds(graph, cluster)
  np.testing.assert_array_equal(found[0], by_roofline[0])
  assert found[1, 1] != by_roofline[1, 1]
  np.testing.assert_array_equal(found[:, 0], by_roofline[:, 0])


def test_the_gap_before_a_kernel_is_the_streams():
  made = calibrations.make(kernels=(('Mul', 1e6, 1e9, 1e-2),), gap_s=2e-6)
  cluster = calibrated.applied(presets.preset('1xH100'), made)
  assert _seconds(cluster, ['Mul'], [1e6],
                  [1e9])[0] == pytest.approx(1e-2 - 2e-6)


def test_what_launches_no_kernel_has_no_time_on_the_stream():
  cluster = _cluster((('Mul', 1e6, 1e9, 1e-2),))
  assert _seconds(cluster, ['Reshape', 'Const'], [0, 0],
                  [8, 8]).tolist() == [0, 0]


def test_nor_have_ops_of_the_hosts_memory():
  cluster = _cluster((('Mul', 1e6, 1e9, 1e-2),))
  graph = graphs.make_graph(num_ops=2, op_types=['Mul'] * 2, io_bytes=8)
  graph = graph.replace(host_ops=frozenset(graph.names[:1]))
  costs = calibrated_costs.CalibratedCostModel()
  on_gpu = costs.op_seconds(graph, cluster)[:, 1]
  assert on_gpu[0] == 0 < on_gpu[1]


def test_large_ops_of_the_hosts_memory_take_the_time_of_the_host():
  """They took no time at all if they were on a GPU."""
  cluster = _cluster((('Mul', 1e6, 1e9, 1e-2),))
  graph = graphs.make_graph(num_ops=1, op_types=['Mul'], io_bytes=2e8)
  graph = graph.replace(host_ops=frozenset(graph.names))
  costs = calibrated_costs.CalibratedCostModel()
  cpu, gpu = costs.op_seconds(graph, cluster)[0]
  assert gpu == cpu > 1e-3


def test_measured_kernels_contain_what_winograd_saves():
  """The saving would count twice."""
  cluster = calibrated.applied(
      presets.preset('1xP100'),
      calibrations.make('Tesla P100-PCIE-16GB',
                        kernels=(('Conv2D', 1e12, 1e6, 1e-1),)))
  graph = graphs.make_graph(num_ops=2, op_types=['Conv2D'] * 2, flops=1e12,
                            io_bytes=1e6)
  graph = graph.replace(winograd_by_name={graph.names[0]: 1.})
  one, other = calibrated_costs.CalibratedCostModel().op_seconds(
      graph, cluster)[:, 1]
  assert one == other
  one, other = roofline.Roofline().op_seconds(graph, cluster)[:, 1]
  assert 2.9 < other / one <= 3


def test_points_of_one_size_are_averaged():
  cluster = _cluster((('Sum', 1e6, 1e9, 1e-2), ('Sum', 1e6, 1e9, 4e-2)))
  assert _seconds(cluster, ['Sum'], [1e6], [1e9])[0] == pytest.approx(2e-2)


def test_as_often_as_an_op_runs():
  cluster = _cluster((('Mul', 1e6, 1e9, 1e-2),))
  graph = graphs.make_graph(num_ops=1, op_types=['Mul'], flops=1e6,
                            io_bytes=1e9).replace(executions=np.array([3.]))
  found = calibrated_costs.CalibratedCostModel().op_seconds(graph, cluster)
  assert found[0, 1] == pytest.approx(3e-2)


def test_what_the_host_does_for_an_op_is_what_was_measured():
  bare_s = presets.preset('1xH100').devices[1].dispatch_s
  cluster = _cluster((('Mul', 1e6, 1e9, 1e-2),), launching_op_s=3 * bare_s,
                     cudnn_op_s=11 * bare_s)
  graph = graphs.make_graph(num_ops=2, op_types=['Mul', 'Conv2D'])
  np.testing.assert_allclose(
      calibrated_costs.of(cluster).host_work(graph), [2, 10])
  # What was not measured is the roofline's.
  cluster = _cluster((('Mul', 1e6, 1e9, 1e-2),), gap_s=1e-6)
  np.testing.assert_array_equal(
      calibrated_costs.of(cluster).host_work(graph),
      roofline.Roofline().host_work(graph))


def test_the_simulator_takes_it_where_the_cluster_is_calibrated():
  cluster = _cluster((('Mul', 1e6, 1e9, 1e-2),))
  assert isinstance(
      simulator.Simulator(cluster).cost_model,
      calibrated_costs.CalibratedCostModel)
  assert isinstance(
      simulator.Simulator(presets.preset('1xH100')).cost_model,
      roofline.Roofline)
