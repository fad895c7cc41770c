"""Tests of gdp_grappler.evaluation.costs.profiled_costs."""

import dataclasses

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.costs import profiled_costs
from gdp_grappler.evaluation.costs import roofline as roofline_lib
from helpers import clusters
from helpers import graphs
from helpers import profiles

_CLUSTER = clusters.make_cluster()  # A CPU and two GPUs.
_VISIT_S = 1e-6


def _law(flops, io_bytes):
  """Seconds of an execution, as the made-up device has them."""
  return 2e-6 + flops / 3e10 + io_bytes / 5e9


def _graph(seed, num_ops=60, op_type='MatMul', prefix='op'):
  generator = np.random.default_rng(seed)
  return graphs.make_graph(num_ops=num_ops,
                           names=[f'{prefix}{i}' for i in range(num_ops)],
                           op_types=[op_type] * num_ops,
                           flops=10.**generator.uniform(3, 8, num_ops),
                           io_bytes=10.**generator.uniform(2, 7, num_ops))


def _lawful(graph, **fields):
  return profiles.of_graph(graph, _law(graph.flops, graph.io_bytes), **fields)


def test_the_profiled_graph_costs_what_was_measured():
  graph = _graph(0)
  profile = profiles.of_graph(graph, np.random.default_rng(1).random(60))
  costs = profiled_costs.ProfiledCostModel(profile)
  measured, = profile.devices
  seconds = costs.op_seconds(graph, _CLUSTER)
  np.testing.assert_allclose(seconds[:, 0], measured.seconds + _VISIT_S)
  assert seconds[:, 0].sum() + measured.empty_step_s == pytest.approx(
      measured.step_s)
  assert costs.coverage(graph) == profiled_costs.Coverage(60, 0, 0)


def test_other_profiles_are_other_cost_models():
  graph = _graph(0)
  fast, slow = (profiled_costs.ProfiledCostModel(
      profiles.of_graph(graph, np.full(graph.num_ops, seconds)))
                for seconds in (1e-6, 1e-3))
  assert fast != slow and len({fast, slow}) == 2


def test_devices_of_other_types_keep_the_roofline():
  graph = _graph(0)
  seconds = profiled_costs.ProfiledCostModel(_lawful(graph)).op_seconds(
      graph, _CLUSTER)
  np.testing.assert_array_equal(
      seconds[:, 1:],
      roofline_lib.Roofline().op_seconds(graph, _CLUSTER)[:, 1:])


def test_how_often_ops_ran_was_measured_too():
  graph = _graph(0, 3).replace(executions=[1, 1, 1])
  profile = profiles.of_graph(graph, [1e-3, 2e-3, 0], executions=[10, 1, 0])
  seconds = profiled_costs.ProfiledCostModel(profile).op_seconds(
      graph, _CLUSTER)[:, 0]
  np.testing.assert_allclose(seconds,
                             [1e-3 + 10 * _VISIT_S, 2e-3 + _VISIT_S, _VISIT_S])


def test_known_ops_of_a_changed_graph():
  graph = _graph(0, 10)
  profile = profiles.of_graph(graph, np.arange(1, 11) * 1e-3)
  other = graphs.make_graph(num_ops=3, names=['new', 'op4',
                                              'op7'], op_types=['MatMul'] * 3,
                            flops=graph.flops[[0, 4, 0]],
                            io_bytes=graph.io_bytes[[0, 4, 7]])
  other = other.replace(executions=[1, 3, 1])
  costs = profiled_costs.ProfiledCostModel(profile)
  # 'op7' has another size now.
  assert costs.coverage(other) == profiled_costs.Coverage(1, 2, 0)
  seconds = costs.op_seconds(other, _CLUSTER)[:, 0]
  assert seconds[1] == pytest.approx(3 * (5e-3 + _VISIT_S))


def test_an_op_that_did_not_run_has_no_seconds_for_another_graph():
  """An op of a branch that was not taken was once free in other graphs."""
  graph = _graph(0)
  executions, seconds = np.ones(60), _law(graph.flops, graph.io_bytes)
  executions[3] = seconds[3] = 0
  profile = profiles.of_graph(graph, seconds, executions=executions)
  other = graphs.make_graph(num_ops=2, names=['op3', 'op4'],
                            op_types=['MatMul'] * 2, flops=graph.flops[3:5],
                            io_bytes=graph.io_bytes[3:5])
  costs = profiled_costs.ProfiledCostModel(profile)
  np.testing.assert_allclose(
      costs.op_seconds(other, _CLUSTER)[:, 0] - _VISIT_S,
      _law(other.flops, other.io_bytes), rtol=1e-6)
  assert costs.coverage(other) == profiled_costs.Coverage(1, 1, 0)
  assert costs.coverage(graph) == profiled_costs.Coverage(60, 0, 0)


def test_held_out_ops_obey_the_law_of_the_others():
  profile = _lawful(_graph(0))
  held_out = _graph(1, prefix='held_out')
  costs = profiled_costs.ProfiledCostModel(profile)
  assert costs.coverage(held_out) == profiled_costs.Coverage(0, 60, 0)
  np.testing.assert_allclose(
      costs.op_seconds(held_out, _CLUSTER)[:, 0] - _VISIT_S,
      _law(held_out.flops, held_out.io_bytes), rtol=1e-6)


def test_noise_and_outliers_bend_the_law_little():
  graph = _graph(0)
  generator = np.random.default_rng(2)
  seconds = _law(graph.flops, graph.io_bytes) * np.exp(
      generator.normal(0, .05, 60))
  seconds[generator.permutation(60)[:6]] *= 20
  held_out = _graph(1, prefix='held_out')
  found = profiled_costs.ProfiledCostModel(profiles.of_graph(
      graph, seconds)).op_seconds(held_out, _CLUSTER)[:, 0]
  truth = _law(held_out.flops, held_out.io_bytes) + _VISIT_S
  assert np.abs(np.log(found / truth)).max() < np.log(1.3)


@pytest.mark.parametrize('seed', range(5))
def test_fits_never_go_down(seed):
  generator = np.random.default_rng(seed)
  coefficients = profiled_costs.fit(*generator.random((2, 20)) * 1e6,
                                    generator.random(20))
  assert min(coefficients) >= 0 < max(coefficients)


def test_few_sizes_scale_the_roofline():
  graph = _graph(0, 2)
  roofline = roofline_lib.Roofline().op_seconds(graph, _CLUSTER)[:, 0]
  profile = profiles.of_graph(graph, 3 * roofline)
  other = _graph(1, prefix='other')
  costs = profiled_costs.ProfiledCostModel(profile)
  assert costs.coverage(other) == profiled_costs.Coverage(0, 60, 0)
  np.testing.assert_allclose(
      costs.op_seconds(other, _CLUSTER)[:, 0] - _VISIT_S,
      3 * roofline_lib.Roofline().op_seconds(other, _CLUSTER)[:, 0])


def test_types_never_seen_take_their_family_s_ratio_and_else_the_overall():
  graph = graphs.make_graph(num_ops=3, op_types=['Relu', 'Relu', 'Sum'],
                            io_bytes=[1e6, 1e6, 1e6])
  model = roofline_lib.Roofline()
  roofline = model.op_seconds(graph, _CLUSTER)[:, 0]
  profile = profiles.of_graph(graph, roofline * [5, 5, 2])
  other = graphs.make_graph(num_ops=3, op_types=['Tanh', 'Max', 'TopKV2'],
                            names=['a', 'b', 'c'], io_bytes=1e7)
  costs = profiled_costs.ProfiledCostModel(profile)
  assert costs.coverage(other) == profiled_costs.Coverage(0, 0, 3)
  np.testing.assert_allclose(
      costs.op_seconds(other, _CLUSTER)[:, 0] - _VISIT_S,
      model.op_seconds(other, _CLUSTER)[:, 0] * [5, 2, 5])


def test_ops_without_a_kernel_do_not_spoil_the_ratios_of_a_gpu():
  """Ratios of 0 s to 0 s once made all types that were never seen NaN."""
  gpus = presets.preset('2xP100')
  graph = graphs.make_graph(num_ops=3, op_types=['Relu', 'Identity', 'Relu'],
                            io_bytes=1e6)
  model = roofline_lib.Roofline()
  seconds = 3 * model.op_seconds(graph, gpus)[:, 1]
  profile = profiles.of_graph(graph, seconds, visit_s=0.,
                              devices=((gpus.devices[1].name, 'GPU'),))
  other = graphs.make_graph(num_ops=4, names=['a', 'b', 'c', 'd'],
                            op_types=['Tanh', 'Max', 'Identity',
                                      'Reshape'], io_bytes=1e7)
  costs = profiled_costs.ProfiledCostModel(profile)
  np.testing.assert_allclose(
      costs.op_seconds(other, gpus)[:, 1],
      3 * model.op_seconds(other, gpus)[:, 1])


@pytest.mark.parametrize('io_bytes, seconds', [(12., 0), (1e6, 1 + _VISIT_S)])
def test_only_small_ops_of_the_hosts_memory_take_no_time_on_a_gpu(
    io_bytes, seconds):
  """Large ones had 0 s in place of their measured seconds, too."""
  gpus = presets.preset('1xP100')
  graph = graphs.make_graph(num_ops=2, op_types=['AddV2'] * 2,
                            io_bytes=io_bytes)
  graph = graph.replace(host_ops=frozenset(graph.names[:1]))
  profile = profiles.of_graph(graph, np.ones(2),
                              devices=((gpus.devices[1].name, 'GPU'),))
  costs = profiled_costs.ProfiledCostModel(profile)
  on_gpu = costs.op_seconds(graph, gpus)[:, 1]
  assert on_gpu.tolist() == pytest.approx([seconds, 1 + _VISIT_S])


def test_ops_that_were_not_timed_are_priced_by_the_law_of_the_others():
  """Their price was once 0 s."""
  graph = _graph(0)
  profile = _lawful(graph)
  device, = profile.devices
  seconds = device.seconds.copy()
  seconds[[3, 5]] = 0
  profile = dataclasses.replace(
      profile, devices=(dataclasses.replace(device, seconds=seconds,
                                            untimed=(3, 5)),))
  costs = profiled_costs.ProfiledCostModel(profile)
  np.testing.assert_allclose(
      costs.op_seconds(graph, _CLUSTER)[:, 0] - _VISIT_S,
      _law(graph.flops, graph.io_bytes), rtol=1e-6)
  assert costs.coverage(graph) == profiled_costs.Coverage(58, 2, 0)


def test_a_worker_s_own_profile_wins():
  graph = _graph(0, 4)
  names = [d.name for d in _CLUSTER.devices]
  slow = profiles.of_graph(graph, np.full(4, 2.), devices=((names[2], 'GPU'),))
  fast = profiles.of_graph(graph, np.full(4, 1.), devices=((names[1], 'GPU'),))
  both = dataclasses.replace(slow, devices=slow.devices + fast.devices)
  seconds = profiled_costs.ProfiledCostModel(both).op_seconds(graph, _CLUSTER)
  np.testing.assert_allclose(seconds[:, 1:], [[1 + _VISIT_S, 2 + _VISIT_S]] * 4)


def test_measured_workspace_wins():
  graph = graphs.make_graph([(0, 1, 400)], op_types=['Relu', 'TopKV2'])
  other = graphs.make_graph([(0, 1, 400)], op_types=['Relu', 'TopKV2'],
                            names=['x', 'y'])
  profile = profiles.of_graph(graph, [1., 1.], workspace_bytes=7,
                              devices=((_CLUSTER.devices[1].name, 'GPU'),))
  costs = profiled_costs.ProfiledCostModel(profile)
  np.testing.assert_array_equal(costs.workspace_bytes(graph, _CLUSTER),
                                [[0, 7, 7], [0, 7, 7]])
  np.testing.assert_array_equal(costs.workspace_bytes(other, _CLUSTER),
                                [[0, 0, 0], [0, 800, 800]])


@pytest.mark.parametrize('measured,expected', [(1000, 520), (7, 7)])
def test_measured_scratch_of_a_convolution_does_not_count(measured, expected):
  """TensorFlow takes an algorithm without scratch if memory is short."""
  graph = graphs.make_graph([(0, 2, 400), (1, 2, 120)],
                            op_types=['Relu', 'Relu', 'Conv2D'])
  profile = profiles.of_graph(
      graph, [1.] * 3, workspace_bytes=[1000, 1000, measured], devices=tuple(
          (d.name, d.type) for d in _CLUSTER.devices[:2]))
  costs = profiled_costs.ProfiledCostModel(profile)
  np.testing.assert_array_equal(
      costs.workspace_bytes(graph, _CLUSTER)[:, :2],
      [[1000, 1000], [1000, 1000], [measured, expected]])


def test_an_op_that_did_not_run_needs_workspace_in_another_graph():
  """Its workspace of 0 bytes was once taken for a measured one."""
  graph = graphs.make_graph([(0, 1, 400)], op_types=['Relu', 'TopKV2'])
  profile = profiles.of_graph(graph, [1., 0.], executions=[1, 0],
                              workspace_bytes=[7, 0],
                              devices=((_CLUSTER.devices[1].name, 'GPU'),))
  costs = profiled_costs.ProfiledCostModel(profile)
  other = graphs.make_graph([(0, 1, 400)], num_ops=3,
                            op_types=['Relu', 'TopKV2',
                                      'Relu'], flops=[*graph.flops, 1],
                            io_bytes=[*graph.io_bytes, 1])
  np.testing.assert_array_equal(
      costs.workspace_bytes(other, _CLUSTER)[:2], [[0, 7, 7], [0, 800, 800]])


def test_from_file(tmp_path):
  graph = _graph(0, 5)
  path = tmp_path / 'p.json'
  _lawful(graph).save(path)
  costs = profiled_costs.from_file(path, graph)
  assert costs.coverage(graph).known == 5


def test_a_profile_of_something_else_is_refused(tmp_path):
  path = tmp_path / 'p.json'
  _lawful(_graph(0, 5)).save(path)
  with pytest.raises(errors.GdpError, match=r'p\.json.*no type of op'):
    profiled_costs.from_file(path, _graph(0, 5, op_type='Conv2D'))
