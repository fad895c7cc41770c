import collections

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import local_devices
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import presets
from helpers import clusters
from helpers import graphs

_CLUSTER = presets.preset('2xP100')


def _placed(devices):
  return placement_lib.Placement(devices, _CLUSTER)


def test_devices_are_copied_and_read_only():
  devices = np.array([0, 1])
  placement = _placed(devices)
  devices[0] = 2
  assert placement.devices.tolist() == [0, 1]
  with pytest.raises(ValueError, match='read-only'):
    placement.devices[0] = 1


def test_strings_and_counts():
  placement = _placed([0, 2, 2])
  assert placement.device_strings()[1].endswith('/device:GPU:1')
  assert placement.counts() == {'CPU:0': 1, 'GPU:0': 0, 'GPU:1': 2}


def test_counts_of_devices_that_differ_only_in_their_task():
  tasks = [f'/job:w/replica:0/task:{i}/device:CPU:0' for i in range(2)]
  placement = placement_lib.Placement([1, 1, 0],
                                      local_devices.local_cluster(tasks))
  assert placement.counts() == {'w/0/CPU:0': 1, 'w/1/CPU:0': 2}


def test_cut_counts_a_tensor_once_per_receiver():
  graph = graphs.make_graph([(0, 1, 10), (0, 2, 10), (0, 3, 10), (0, 3, 5, 1),
                             (0, 1), (3, 1, 7)])
  assert _placed([0, 1, 1, 2]).cut(graph) == (4, 10 + 10 + 5 + 7)
  assert _placed([1, 1, 1, 1]).cut(graph) == (0, 0)


def test_from_groups():
  graph = graphs.chain(4, groups=[0, 1, 0, 2])
  placement = placement_lib.from_groups(graph, [2, 0, 1], _CLUSTER)
  assert placement.devices.tolist() == [2, 0, 2, 1]


def test_messages():
  graph = graphs.chain(3, groups=[0, 0, 1], allowed_types=[[1, 1], [1, 1],
                                                           [1, 0]])
  found = {v.kind: v.message for v in _placed([0, 1, 2]).violations(graph)}
  assert found == {
      'device': 'op2 (MatMul) is on GPU:1; allowed: CPU:0',
      'colocation': 'op0 and op1 must share a device but are on CPU:0 and '
                    'GPU:0'
  }


def test_a_variable_is_named_as_plan_files_have_it():
  """Messages had the variable alone, which the file does not mention."""
  graph = graphs.chain(2, groups=[0, 0], names=['unknown_48', 'update'])
  graph = graph.replace(variables=('adam/kernel_velocity', ''))
  found, = _placed([1, 2]).violations(graph)
  assert found.message == (
      'adam/kernel_velocity [unknown_48] and update must share a device but '
      'are on GPU:0 and GPU:1')


def test_what_would_round_is_named_with_the_way_out():
  graph = graphs.chain(2, same_numbers=[[0, 1], [1, 1]])
  found, = _placed([0, 0]).violations(graph)
  assert found.kind == 'numbers'
  assert found.message == (
      'op0 (MatMul) is on CPU:0, where its numbers, or those of an op that '
      'stays with it, are rounded differently; allowed: GPU:0, GPU:1; or allow '
      'that by may_round')
  assert not _placed([0, 0]).violations(graph.replace(may_round=True))


@pytest.mark.parametrize(
    'devices, messages',
    [([0, 0], ['2 devices for 3 ops']), ([[0, 0, 0]], ['3 devices for 3 ops']),
     ([], ['0 devices for 3 ops']),
     ([0, 3, -1
      ], ['op1 has device number 3 of 3', 'op2 has device number -1 of 3'])])
def test_not_a_device_per_op(devices, messages):
  violations = _placed(devices).violations(graphs.chain(3))
  assert [v.message for v in violations] == messages
  assert {v.kind for v in violations} == {'shape'}


def test_a_cluster_that_cannot_hold_the_graph():
  graph = graphs.chain(2, pins=['GPU:9', ''], user_pins=[True, False])
  with pytest.raises(errors.InfeasiblePlacementError):
    _placed([0, 0]).violations(graph)


def _random_case(seed):
  rng = np.random.default_rng(seed)
  n = int(rng.integers(1, 12))
  groups = np.unique(rng.integers(0, n, n), return_inverse=True)[1]
  # Rules by group, so that every graph can be placed.
  gpu, pinned = rng.random((2, n)) < 0.6
  names = rng.choice(['CPU:0', '/gpu:1', 'gone:5'], n)
  types = np.stack([np.ones(n, bool), gpu[groups]], axis=1)
  pins = [
      names[g] if pinned[g] and rng.random() < 0.5 and
      (gpu[g] or names[g] != '/gpu:1') else '' for g in groups
  ]
  graph = graphs.chain(n, groups=groups, allowed_types=types, pins=pins)
  devices = rng.integers(0, 3, n)
  if rng.random() < 0.5:
    devices = rng.integers(0, 3, n)[groups]
  return graph, devices


def _breaches(graph, devices):
  """Ops on devices that an op of their group rules out, and divided groups."""
  wrong, of_group = set(), collections.defaultdict(set)
  for op, device in enumerate(devices):
    of_group[graph.groups[op]].add(device)
    for other in range(graph.num_ops):
      if graph.groups[other] == graph.groups[op]:
        pin = {'': device, 'CPU:0': 0, '/gpu:1': 2,
               'gone:5': 0}[graph.pins[other]]
        if pin != device or not graph.allowed_types[other, int(device > 0)]:
          wrong.add(graph.names[op])
  return wrong, sum(len(found) > 1 for found in of_group.values())


def test_violations_are_exactly_those_a_plain_reading_finds():
  clean = 0
  for seed in range(400):
    graph, devices = _random_case(seed)
    found = _placed(devices).violations(graph)
    wrong, divided = _breaches(graph, devices)
    assert sorted(v.message.split(' ')[0] for v in found
                  if v.kind == 'device') == sorted(wrong)
    assert sum(v.kind == 'colocation' for v in found) == divided
    clean += not found
  assert 40 < clean < 360


def test_violations_of_priorities():
  graph = graphs.chain(3)

  def found(priorities):
    return [(v.kind, v.message) for v in placement_lib.Placement(
        [1, 1, 1], _CLUSTER, priorities).violations(graph)]

  assert not found(None)
  assert not found([1., -2., 0.])
  assert found([1., 2.]) == [('priority', '2 priorities for 3 ops')]
  assert found([1., np.nan, np.inf]) == [('priority', 'op1 has priority nan'),
                                         ('priority', 'op2 has priority inf')]


def test_priorities_are_numbers_that_nobody_changes():
  given = np.array([3, 1, 2])
  placement = placement_lib.Placement([1, 1, 1], _CLUSTER, given)
  given[0] = 9
  assert placement.priorities.tolist() == [3., 1., 2.]
  assert placement.priorities.dtype == np.float64
  with pytest.raises(ValueError, match='read-only'):
    placement.priorities[0] = 1.


@pytest.mark.parametrize('priorities, expected',
                         [(None, [None, None]), ([1., 2.], [[1, 2], [1, 2]]),
                          ([[1., 2.], [3., 4.]], [[1, 2], [3, 4]])])
def test_rows_are_placements_with_their_priorities(priorities, expected):
  cluster = clusters.make_cluster(2)
  found = placement_lib.of_rows(np.array([[0, 1], [2, 2]]), cluster, priorities)
  assert [p.devices.tolist() for p in found] == [[0, 1], [2, 2]]
  assert [
      p.priorities if p.priorities is None else p.priorities.tolist()
      for p in found
  ] == expected
