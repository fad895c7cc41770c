import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import presets
from helpers import clusters
from helpers import graphs

_CLUSTER = presets.preset('2xP100')


def _allowed(num_ops=3, **fields):
  graph = graphs.chain(num_ops, **fields)
  return constraints.allowed_devices(graph, _CLUSTER).tolist()


def test_everything_is_allowed_by_default():
  assert _allowed() == [[True] * 3] * 3


def test_kernels_of_a_group_count_together():
  types = [[True, False], [True, True], [False, True]]
  assert _allowed(allowed_types=types, groups=[0, 0,
                                               1]) == [[True, False, False],
                                                       [False, True, True]]


def test_pins_by_any_name():
  assert _allowed(pins=['GPU:1', '', '/cpu:0']) == [[False, False, True],
                                                    [True] * 3,
                                                    [True, False, False]]


@pytest.mark.parametrize('cluster, absent, expected', [
    ('2xP100', '/job:w/replica:0/task:7/device:GPU:0', 1),
    ('2xP100', 'GPU:5', 1),
    ('2xP100', '/job:w/replica:0/task:7/device:CPU:0', 0),
    ('cpu', 'GPU:0', 0),
    ('cpu', '/job:w/replica:0/task:7', 0),
    ('2x2xP100-eth10', '/job:worker/task:1/device:GPU:7', 4),
    ('2x2xP100-eth10', '/job:worker/task:1/device:CPU:7', 3),
    ('2x2xP100-eth10', '/job:worker/task:7/device:GPU:0', 1),
    ('4xcpu-eth10', '/job:worker/task:1/device:GPU:0', 1),
])
def test_absent_device_means_one_of_its_type(cluster, absent, expected):
  """It meant the first such device, not one of the pin's own task."""
  allowed = constraints.allowed_devices(graphs.chain(1, pins=[absent]),
                                        presets.preset(cluster))
  assert np.flatnonzero(allowed).tolist() == [expected]


@pytest.mark.parametrize(
    'cluster, fields, match',
    [
        ('2xP100', {
            'pins': ['', 'GPU:5', ''], 'user_pins': [False, True, False]
        }, 'Op "op1" is pinned to GPU:5. Device "GPU:5" is not in cluster '
         '"2xP100". .* remove the pin'),
        ('2xP100', {
            'pins': ['', 'GPU:0', ''], 'user_pins': [False, True, False],
            'allowed_types': [[1, 1], [1, 0], [1, 1]]
        }, r'op1 \(MatMul, pinned to GPU:0\) may be on none'),
        ('cpu', {'allowed_types': [[1, 1], [0, 1], [1, 1]]},
         r'"op1" \(MatMul\) may be on no device of cluster "cpu", only on a '
         'GPU. Give'),
        # The message told users to remove a pin, but they had set none.
        ('cpu', {'allowed_types': [[0, 1]] * 3, 'pins': ['GPU:0'] * 3
                }, r'"op0" \(MatMul\) .* only on a GPU. Give'),
        ('2xP100', {'groups': [0, 1, 0], 'pins': ['GPU:0', '', 'GPU:1']
                   }, 'op2 .* on GPU:1; op0 .* on GPU:0. Remove a pin'),
        ('2xP100', {
            'groups': [0, 1, 0], 'allowed_types': [[1, 0], [1, 1], [0, 1]]
        }, r'\. Give a cluster with a device that suits all\.$'),
    ])
def test_graphs_that_a_cluster_cannot_hold(cluster, fields, match):
  with pytest.raises(errors.InfeasiblePlacementError, match=match):
    constraints.allowed_devices(graphs.chain(3, **fields),
                                presets.preset(cluster))


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


_ON_GPU, _ANYWHERE, _ON_CPU = [0, 1], [1, 1], [1, 0]


def test_what_rounds_keeps_to_its_kind_of_device():
  """And so does what stays with it."""
  same = [_ANYWHERE, _ON_GPU, _ON_CPU, _ANYWHERE]
  assert _allowed(4, groups=[0, 0, 1,
                             2], same_numbers=same) == [[False, True, True],
                                                        [True, False, False],
                                                        [True, True, True]]


def test_what_may_round_goes_anywhere():
  assert _allowed(4, groups=[0, 0, 1, 2], same_numbers=[_ON_GPU] * 4,
                  may_round=True) == [[True] * 3] * 3


def test_kernels_and_pins_have_the_first_word():
  """Numbers that nothing can keep are nobody's rule."""
  assert _allowed(4, same_numbers=[_ON_GPU] * 4, allowed_types=[[1, 0], [1, 1],
                                                                [1, 1], [1, 1]],
                  pins=['', 'CPU:0', 'GPU:1', '']) == [[True, False, False],
                                                       [True, False, False],
                                                       [False, False, True],
                                                       [False, True, True]]


def test_a_cluster_of_one_kind_has_nothing_to_keep():
  graph = graphs.chain(4, same_numbers=[_ON_GPU, _ON_CPU] * 2)
  for cluster in (presets.preset('cpu'), clusters.make_cluster(0)):
    assert constraints.allowed_devices(graph, cluster).all()
    assert not constraints.changes_numbers(graph, cluster, np.zeros(4,
                                                                    int)).any()


def test_suitable_devices_agree_with_what_groups_may():
  rng = np.random.default_rng(0)
  for _ in range(50):
    groups = np.unique(rng.integers(0, 12, 40), return_inverse=True)[1]
    kinds = rng.random((40, 2)) < .9
    kinds[:, 0] |= ~kinds.any(axis=1)
    same = rng.random((40, 2)) < .7
    same[:, 1] |= ~same.any(axis=1)
    types = kinds[np.unique(groups, return_index=True)[1]][groups]
    graph = graphs.make_graph(num_ops=40, groups=groups, allowed_types=types,
                              same_numbers=same)
    allowed = constraints.allowed_devices(graph, _CLUSTER)
    demands = constraints.suitable_devices(graph, _CLUSTER)
    for group in range(graph.num_groups):
      assert (demands[groups == group].all(axis=0) == allowed[group]).all()


def test_what_rounds_is_counted_where_it_is():
  graph = graphs.chain(3, same_numbers=[_ON_GPU, _ON_CPU, _ANYWHERE])
  assert constraints.changes_numbers(graph, _CLUSTER, np.array(
      [0, 1, 0])).tolist() == [True, True, False]
  assert not constraints.changes_numbers(graph, _CLUSTER, np.array([2, 0, 0
                                                                   ])).any()


def test_where_ops_with_kernels_round_otherwise():
  graph = graphs.chain(2, same_numbers=[[False, True], [True, True]],
                       allowed_types=[[True, True], [True, False]])
  assert constraints.changes_numbers_on(
      graph, _CLUSTER).tolist() == [[True, False, False], [False] * 3]
