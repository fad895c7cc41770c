import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import presets
from helpers import graphs

_CLUSTER = presets.preset('2xP100')


def _allowed(**fields):
  graph = graphs.chain(3, **fields)
  return constraints.allowed_devices(graph, _CLUSTER).tolist()


def test_everything_is_allowed_by_default():
  assert _allowed() == [[True] * 3] * 3


def test_kernels_of_a_group_count_together():
  types = [[True, False], [True, True], [False, True]]
  assert _allowed(allowed_types=types, groups=[0, 0,
                                               1]) == [[True, False, False],
                                                       [False, True, True]]


def test_pins_by_any_name_and_to_the_host_where_the_device_is_absent():
  assert _allowed(
      pins=['GPU:1', '', '/job:w/replica:0/task:7/device:GPU:0']) == [[
          False, False, True
      ], [True] * 3, [True, False, False]]


def test_a_users_pin_has_to_exist():
  with pytest.raises(
      errors.InfeasiblePlacementError,
      match='Op "op1" is pinned to GPU:5. Device "GPU:5" is not '
      'in cluster "2xP100". .* remove the pin'):
    _allowed(pins=['', 'GPU:5', ''], user_pins=[False, True, False])


def test_a_users_pin_to_a_device_without_a_kernel():
  with pytest.raises(errors.InfeasiblePlacementError,
                     match=r'op1 \(MatMul, pinned to GPU:0\) may be on none'):
    _allowed(pins=['', 'GPU:0', ''], user_pins=[False, True, False],
             allowed_types=[[True, True], [True, False], [True, True]])


def test_an_op_of_another_type_of_device():
  with pytest.raises(
      errors.InfeasiblePlacementError,
      match=r'"op1" \(MatMul\) may be on no device of cluster '
      '"cpu", only on a GPU. Give'):
    constraints.allowed_devices(
        graphs.chain(2, allowed_types=[[True, True], [False, True]]),
        presets.preset('cpu'))


def test_torn_groups_are_explained():
  with pytest.raises(errors.InfeasiblePlacementError,
                     match='op2 .* on GPU:1; op0 .* on GPU:0. Remove a pin'):
    _allowed(groups=[0, 1, 0], pins=['GPU:0', '', 'GPU:1'])


def test_empty_graph():
  assert constraints.allowed_devices(graphs.make_graph(),
                                     _CLUSTER).shape == (0, 3)


@pytest.mark.parametrize('seed', range(5))
def test_against_a_plain_loop(seed):
  rng = np.random.default_rng(seed)
  graph = graphs.random_graph(seed, 60)
  types = rng.random((60, 2)) < 0.9
  types[:, 0] |= ~types[:, 1]
  graph = graph.replace(
      groups=np.arange(60), allowed_types=types,
      pins=[rng.choice(['', 'CPU:0']) if cpu else '' for cpu in types[:, 0]])
  expected = [[
      types[op, int(d.type == 'GPU')] and graph.pins[op] in ('', d.short_name)
      for d in _CLUSTER.devices
  ] for op in range(60)]
  assert constraints.allowed_devices(graph, _CLUSTER).tolist() == expected


def test_what_may_not_be_where_it_is_wanted_is_on_the_host_or_where_it_may():
  allowed = np.array([[True, True, True], [True, False, True],
                      [False, False, True]])
  wanted = np.array([[1, 1, 1], [2, 2, 2]])
  legal = constraints.made_legal(wanted, allowed, 0)
  assert legal.tolist() == [[1, 0, 2], [2, 2, 2]]
  assert legal.dtype == np.int32 and wanted.tolist() == [[1, 1, 1], [2, 2, 2]]
