import dataclasses

import numpy as np
import pytest

from gdp_grappler.placers.list_scheduling import native_scheduler
from gdp_grappler.placers.list_scheduling import task_graph
from helpers import clusters
from helpers import graphs
from helpers import problems
from helpers import reference_list_scheduler

_PLAIN = native_scheduler.Rules(queues=False)
_HEFT = native_scheduler.Rules(queues=False, insert=True)


def _tasks(graph, cluster, seconds, gpus_only=True):
  problem = problems.make(graph, cluster, seconds)
  allowed = problem.allowed.copy()
  if gpus_only:
    allowed[:, 0] = False
  return task_graph.from_graph(graph, problem.busy_seconds, allowed)


def _run(tasks, cluster, rules=_PLAIN, bundle_bytes=None, favourites=None):
  if bundle_bytes is None:
    bundle_bytes = np.zeros(tasks.num_bundles)
  return native_scheduler.run(tasks, cluster, bundle_bytes, cluster.pool_bytes,
                              rules, favourites)


def test_the_order_of_earliest_task_first():
  # Ranks: b 10, a 8, d 5, c 4, e 1. First b and a get one device each. Then c
  # follows a, and d follows b, because no transfer is needed. The result of c
  # reaches e at 5 s.
  a, b, c, d, e = range(5)
  graph = graphs.make_graph([(a, c, 100), (b, d, 100), (c, e, 100),
                             (d, e, 100)])
  cluster = clusters.make_cluster(2)
  result = _run(_tasks(graph, cluster, [2, 3, 1, 2, 1]), cluster)
  assert result.devices.tolist() == [2, 1, 2, 1, 1]
  assert result.start_s.tolist() == [0, 0, 2, 3, 5]
  assert result.end_s.max() == 6


def test_a_task_stays_at_home_where_sending_takes_longer_than_waiting():
  graph = graphs.fan_out(2, 1000)  # A transfer takes 11 s.
  cluster = clusters.make_cluster(2)
  near = _run(_tasks(graph, cluster, [1, 5, 5]), cluster)
  assert len(set(near.devices)) == 1 and near.end_s.max() == 11
  far = _run(_tasks(graph, cluster, [1, 20, 20]), cluster)
  assert len(set(far.devices)) == 2 and far.end_s.max() == 32


@pytest.mark.parametrize('queues, start_s', [(False, [3, 4]), (True, [3, 5])])
def test_transfers_wait_for_their_channel(queues, start_s):
  # Both tensors are ready at 1 s, and the transfer of each takes 2 s.
  graph = graphs.make_graph([(0, 2, 100), (1, 3, 100)],
                            pins=['GPU:0', 'GPU:0', 'GPU:1', 'GPU:1'])
  cluster = clusters.make_cluster(2)
  result = _run(_tasks(graph, cluster, [1, 0, 1, 1], gpus_only=False), cluster,
                native_scheduler.Rules(queues=queues))
  assert result.start_s[2:].tolist() == start_s


def test_a_port_carries_one_transfer_at_a_time_whatever_the_links():
  # GPU:1 receives two tensors and sends one. Each transfer takes 2 s. Its links
  # could send and receive at the same time.
  graph = graphs.make_graph([(0, 3, 100), (1, 4, 100), (2, 5, 100)], pins=[
      'GPU:0', 'GPU:2', 'GPU:1', 'GPU:1', 'GPU:1', 'GPU:2'
  ])
  cluster = clusters.make_cluster(3)
  tasks = _tasks(graph, cluster, [1, 1, 1, 1, 1, 1], gpus_only=False)
  links = _run(tasks, cluster, native_scheduler.Rules(in_order=True))
  ports = _run(tasks, cluster, native_scheduler.Rules(ports=True,
                                                      in_order=True))
  assert links.start_s[3:].tolist() == [3, 5, 3]
  assert ports.start_s[3:].tolist() == [3, 5, 7]


def test_a_sender_need_not_wait_for_the_port_of_the_receiver():
  # GPU:1 receives from GPU:2 until 2 s and from GPU:0 until 4 s. From 2 s on,
  # GPU:0 sends to GPU:3 for 5 s.
  graph = graphs.make_graph([(0, 3, 100), (1, 4, 100), (2, 5, 400)], pins=[
      'GPU:2', 'GPU:0', 'GPU:0', 'GPU:1', 'GPU:1', 'GPU:3'
  ])
  cluster = clusters.make_cluster(4)
  tasks = _tasks(graph, cluster, [0, 0, 0, 1, 1, 1], gpus_only=False)
  result = _run(tasks, cluster, native_scheduler.Rules(ports=True,
                                                       in_order=True))
  assert result.start_s[3:].tolist() == [2, 4, 7]


def test_a_message_takes_a_port_too():
  graph = graphs.make_graph([(0, 1, 0), (0, 2, 0)],
                            pins=['GPU:0', 'GPU:1', 'GPU:2'])
  cluster = clusters.make_cluster(3)
  tasks = _tasks(graph, cluster, [1, 1, 1], gpus_only=False)
  result = _run(tasks, cluster, native_scheduler.Rules(ports=True))
  assert sorted(result.start_s.tolist()) == [0, 2, 3]


def test_ranks_count_unless_in_order():
  # The path from op 1 is the longest one.
  graph = graphs.make_graph([(1, 2)], num_ops=3)
  cluster = clusters.make_cluster(1)
  tasks = _tasks(graph, cluster, [1, 1, 1])
  assert _run(tasks, cluster).start_s.tolist() == [1, 0, 2]
  in_order = dataclasses.replace(_PLAIN, in_order=True)
  assert _run(tasks, cluster, in_order).start_s.tolist() == [0, 1, 2]


def test_topological_orders():
  graph = graphs.make_graph([(0, 2), (0, 3), (3, 4), (1, 5)])
  tasks = _tasks(graph, clusters.make_cluster(1), 1.)
  order = native_scheduler.topological_order
  assert order(tasks).tolist() == [0, 1, 2, 3, 5, 4]
  assert order(tasks, depth_first=True).tolist() == [0, 3, 4, 2, 1, 5]


def test_what_is_sent_once_is_there_for_all():
  graph = graphs.make_graph([(0, 1, 100), (0, 2, 100)],
                            pins=['GPU:0', 'GPU:1', 'GPU:1'])
  cluster = clusters.make_cluster(2)
  result = _run(_tasks(graph, cluster, [1, 1, 1], gpus_only=False), cluster,
                native_scheduler.Rules())
  assert sorted(result.start_s.tolist()) == [0, 3, 4]


_PAPER_COSTS = [[14, 16, 9], [13, 19, 18], [11, 13, 19], [13, 8, 17],
                [12, 13, 10], [13, 16, 9], [7, 15, 11], [5, 11, 14],
                [18, 12, 20], [21, 7, 16]]
_PAPER_EDGES = [(1, 2, 18), (1, 3, 12), (1, 4, 9), (1, 5, 11), (1, 6, 14),
                (2, 8, 19), (2, 9, 16), (3, 7, 23), (4, 8, 27), (4, 9, 23),
                (5, 9, 13), (6, 8, 15), (7, 10, 17), (8, 10, 11), (9, 10, 13)]


def test_heft_on_the_example_of_its_paper():
  # Topcuoglu et al. 2002, figures 2 and 3: makespan 80 on three processors.
  graph = graphs.make_graph([
      (i - 1, j - 1, size, j) for i, j, size in _PAPER_EDGES
  ])
  cluster = clusters.make_cluster(2, latency_s=0, bandwidth_bytes_per_s=1)
  tasks = _tasks(graph, cluster, _PAPER_COSTS, gpus_only=False)
  result = _run(tasks, cluster, _HEFT)
  assert result.end_s.max() == 80
  assert (result.devices + 1).tolist() == [3, 1, 3, 2, 3, 2, 3, 1, 2, 2]


def test_the_earliest_finish_prefers_the_faster_device():
  graph = graphs.make_graph(num_ops=2)
  cluster = clusters.make_cluster(2)
  tasks = _tasks(graph, cluster, [[9, 10, 2]] * 2)
  assert _run(tasks, cluster).devices.tolist() == [1, 2]
  finish = dataclasses.replace(_PLAIN, earliest_finish=True)
  assert _run(tasks, cluster, finish).devices.tolist() == [2, 2]


def test_a_device_waits_for_the_favourite_child():
  # Op 3 is ready at 4 s and would get the device of op 0. Op 2, the favourite
  # child of op 0, is ready only at 5 s.
  graph = graphs.make_graph([(0, 2, 400), (1, 2), (0, 3, 400)])
  cluster = clusters.make_cluster(2)
  tasks = _tasks(graph, cluster, [4, 4, 2, 6])
  favourites = np.array([2, -1, -1, -1])
  greedy = _run(tasks, cluster)
  waiting = _run(tasks, cluster, dataclasses.replace(_PLAIN, favourites=True),
                 favourites=favourites)
  assert greedy.start_s.tolist() == [0, 0, 9, 4]
  assert greedy.devices.tolist() == [1, 2, 2, 1]
  assert waiting.start_s.tolist() == [0, 0, 5, 7]
  assert waiting.devices.tolist() == [1, 2, 1, 1]


def test_a_device_without_room_is_no_choice():
  graph = graphs.make_graph(num_ops=3)
  cluster = clusters.make_cluster(2, memory_bytes=100)
  tasks = _tasks(graph, cluster, [1, 5, 1])
  # The last op could start first on the device of op 0, but is too large there.
  result = _run(tasks, cluster, bundle_bytes=np.array([50, 10, 60]))
  assert result.devices.tolist() == [2, 1, 1]


@pytest.mark.parametrize('sizes, least', [([80, 50, 70], 1), ([50, 80, 70], 0)])
@pytest.mark.parametrize('rules', [_PLAIN, _HEFT])
def test_what_fits_nowhere_goes_where_it_overflows_least(rules, sizes, least):
  graph = graphs.make_graph(num_ops=3)
  cluster = clusters.make_cluster(2, memory_bytes=100)
  tasks = _tasks(graph, cluster, [9, 9, 1])
  result = _run(tasks, cluster, rules, bundle_bytes=np.array(sizes))
  assert result.devices.tolist() == [1, 2, 1 + least]


@pytest.mark.parametrize('rules', [
    _PLAIN, _HEFT,
    native_scheduler.Rules(local_first=True),
    native_scheduler.Rules(earliest_finish=True)
])
@pytest.mark.parametrize('seed', range(6))
def test_bundles_stay_together_where_memory_is_short(seed, rules):
  cluster = clusters.make_cluster(2 + seed % 4, latency_s=.1,
                                  bandwidth_bytes_per_s=1e6, memory_bytes=1000)
  tasks = _random_tasks(seed, 150, cluster, window=30 if seed % 3 else 150)
  # The bundles need a tenth more than all memories have.
  size = np.random.default_rng(seed).exponential(1, tasks.num_bundles)
  size *= 1100 * cluster.num_devices / size.sum()
  devices = _run(tasks, cluster, rules, bundle_bytes=size).devices
  assert tasks.allowed[tasks.bundles, devices].all()
  for bundle in range(tasks.num_bundles):
    assert len(set(devices[tasks.bundles == bundle])) == 1


def _random_tasks(seed, num_ops, cluster, window=12):
  graph = graphs.random_graph(seed, num_ops, window=window)
  rng = np.random.default_rng(seed)
  return _tasks(graph, cluster,
                rng.lognormal(0, 1, (num_ops, cluster.num_devices)),
                gpus_only=bool(seed % 2))


@pytest.mark.parametrize('insert', [False, True])
@pytest.mark.parametrize('seed', range(12))
def test_against_the_naive_one(seed, insert):
  cluster = clusters.make_cluster(1 + seed % 4, latency_s=.1,
                                  bandwidth_bytes_per_s=1e6)
  tasks = _random_tasks(seed, 60, cluster)
  wanted = reference_list_scheduler.ReferenceScheduler(tasks, cluster)
  if insert:
    wanted.heft()
  else:
    wanted.earliest_task_first()
  result = _run(tasks, cluster, _HEFT if insert else _PLAIN)
  every = range(tasks.num_tasks)
  assert result.devices.tolist() == [wanted.device[task] for task in every]
  np.testing.assert_allclose(result.start_s,
                             [wanted.start_s[task] for task in every],
                             rtol=1e-12)


@pytest.mark.parametrize('rules', [
    native_scheduler.Rules(**{name: True})
    for name in ('queues', 'ports', 'in_order', 'local_first',
                 'earliest_finish', 'insert')
])
@pytest.mark.parametrize('seed', range(4))
def test_schedules_are_possible(rules, seed):
  cluster = clusters.make_cluster(3, latency_s=.1, bandwidth_bytes_per_s=1e6)
  tasks = _random_tasks(seed, 120, cluster)
  _check_possible(tasks, cluster, _run(tasks, cluster, rules))


@pytest.mark.parametrize('rules', [
    native_scheduler.Rules(**{name: True})
    for name in ('queues', 'ports', 'local_first', 'thorough')
])
def test_schedules_of_many_tasks_are_possible(rules):
  # With so many tasks, the number of second estimates is limited.
  cluster = clusters.make_cluster(3, latency_s=.1, bandwidth_bytes_per_s=1e6)
  tasks = _random_tasks(0, 40_500, cluster)
  _check_possible(tasks, cluster, _run(tasks, cluster, rules))


def _check_possible(tasks, cluster, result):
  np.testing.assert_allclose(
      result.end_s - result.start_s, tasks.seconds[np.arange(tasks.num_tasks),
                                                   result.devices])
  for device in range(cluster.num_devices):
    here = np.flatnonzero(result.devices == device)
    here = here[np.argsort(result.end_s[here], kind='stable')]
    here = here[np.argsort(result.start_s[here], kind='stable')]
    assert (result.start_s[here[1:]] >= result.end_s[here[:-1]] - 1e-9).all()
  makers, users = tasks.tensor_tasks[tasks.uses[:, 0]], tasks.uses[:, 1]
  sent_s = np.where(result.devices[makers] == result.devices[users], 0,
                    .1 + tasks.tensor_bytes[tasks.uses[:, 0]] / 1e6)
  assert (result.start_s[users] >= result.end_s[makers] + sent_s - 1e-9).all()


def test_a_cycle_is_refused():
  cluster = clusters.make_cluster(1)
  tasks = _tasks(graphs.make_graph([(0, 1, 8)]), cluster, [1, 1])
  loop = dataclasses.replace(tasks, tensor_tasks=np.array([0, 1]),
                             tensor_bytes=np.array([8, 8]),
                             uses=np.array([[0, 1], [1, 0]]))
  with pytest.raises(ValueError, match='cycle'):
    _run(loop, cluster)


def test_fusing():
  pairs = np.array([[0, 1], [1, 2], [3, 2], [2, 4], [2, 5]])
  sent_s, work_s = np.ones(5), np.array([5, 1, 1, .5, 1, 1])

  def fused(grain, kinds=(0, 0, 0, 0, 0, 0)):
    return native_scheduler.fuse(pairs, sent_s, work_s, np.array(kinds),
                                 grain).tolist()

  # Task 0 is the only producer of 1. Task 3 takes less time than its transfer.
  # Tasks 0 and 1 take more time than their transfer to 2.
  assert fused(1) == [1, 1, 2, 2, 4, 5]
  assert fused(10) == [2, 2, 2, 2, 4, 5]
  assert fused(0) == [1, 1, 2, 3, 4, 5]
  assert fused(10, (1, 0, 0, 0, 0, 0)) == [0, 2, 2, 2, 4, 5]


def test_joining():
  pairs = np.array([[3, 2], [0, 1], [1, 2]])

  def joined(limit_s, worth_s=(-1, -1, -1), kinds=(0, 0, 0, 0)):
    return native_scheduler.join(pairs, np.array(worth_s), np.ones(4),
                                 np.array(kinds), limit_s).tolist()

  assert joined(9) == [0, 0, 0, 0]
  assert joined(2) == [0, 0, 2, 2]
  assert joined(9, kinds=(0, 1, 1, 1)) == [0, 1, 1, 1]
  # The last pair joins bundles of one task and of two tasks.
  assert joined(-1, (1, 0, 1)) == [0, 1, 1, 1]
  assert joined(-1, (1, 1, 1)) == [0, 0, 2, 2]


def _filled(order, size, allowed, targets, pools, pool_bytes):
  """The rules of `native_scheduler.fill` in plain Python."""
  share = sum(
      size[b] for b in order if allowed[b, targets].any()) / len(targets)
  used, left = [0.] * len(pools), list(pool_bytes)
  result, current = [0] * len(order), 0
  for bundle in order:
    room = [left[pool] - size[bundle] for pool in pools]
    here = targets[current]
    while (allowed[bundle, targets].any() and current + 1 < len(targets) and
           used[here] > 0 and
           (used[here] + size[bundle] / 2 > share or room[here] < 0)):
      current += 1
      here = targets[current]
    ahead = [
        d for d in [*targets[current:], *targets[:current]]
        if allowed[bundle, d]
    ]
    suited = ahead or np.flatnonzero(allowed[bundle]).tolist()
    device = next((d for d in suited if room[d] >= 0),
                  max(suited, key=lambda d, room=room: room[d]))
    result[bundle] = device
    used[device] += size[bundle]
    left[pools[device]] -= size[bundle]
  return result


@pytest.mark.parametrize('seed', range(40))
def test_devices_are_filled_one_after_the_other(seed):
  rng = np.random.default_rng(seed)
  count, num_devices = int(rng.integers(1, 30)), int(rng.integers(1, 5))
  allowed = rng.random((count, num_devices)) < rng.choice([.3, .8, 1])
  allowed[np.arange(count), rng.integers(num_devices, size=count)] = True
  pools = np.sort(rng.integers(num_devices, size=num_devices))
  arguments = (rng.permutation(count),
               rng.integers(0, 9, count).astype(float), allowed,
               rng.permutation(num_devices)[:rng.integers(1, num_devices + 1)],
               pools, rng.integers(1, 60, num_devices).astype(float))
  assert native_scheduler.fill(*arguments).tolist() == _filled(*arguments)
