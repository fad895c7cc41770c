"""Features of moves by hand, by a naive oracle, and what must not matter."""

from __future__ import annotations

import dataclasses
from typing import Sequence

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.costs import fixed_costs
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.features.moves import featurizer
from gdp_grappler.features.moves import schema
from gdp_grappler.graph import op_graph
from helpers import clusters
from helpers import graphs

_CLUSTER = clusters.make_cluster(2)


def _log(share: float) -> float:
  """The scale of what spans orders of magnitude."""
  return float(np.sign(share) * np.log1p(abs(share) * 1e4) / np.log1p(1e4))


_MOST_STEPS = 999.


def _unlog(value: np.ndarray) -> np.ndarray:
  return np.sign(value) * np.expm1(np.abs(value) * np.log1p(1e4)) / 1e4


def _with_streams() -> cluster_lib.Cluster:
  """The cluster with asynchronous GPUs, whose host takes no time."""
  return dataclasses.replace(
      _CLUSTER, devices=tuple(
          dataclasses.replace(device, launch=cluster_lib.ASYNCHRONOUS
                             ) if device.type == 'GPU' else device
          for device in _CLUSTER.devices))


def _described(graph: op_graph.OpGraph, devices: Sequence[int],
               moved: Sequence[Sequence[int]], cluster=_CLUSTER,
               seconds: object = 1.) -> dict[str, np.ndarray]:
  """Name -> [K], of moves from `devices` [G] to `moved` [K, G]."""
  seconds = np.broadcast_to(seconds, (graph.num_ops, cluster.num_devices))
  moves = featurizer.MoveFeaturizer(graph, cluster,
                                    fixed_costs.FixedCostModel(seconds))
  moves.observe(np.array(devices, np.int32))
  features = moves.describe(np.array(moved, np.int32))
  assert np.isfinite(features).all()
  return dict(zip(schema.NATIVE, features.T))


def test_a_chain_that_is_brought_together():
  # op0 0..1, its tensor until 3, op1 3..4, its tensor until 6, op2 6..7.
  found = _described(graphs.chain(3), [1, 2, 1], [[1, 1, 1]])
  for name, value in {
      'groups': np.log(2) / np.log(4),
      'work_share': _log(1 / 3),
      'work_s': _log(1 / 7),
      'work_change_s': 0,
      'backflow': 0,
      'source_busy': 1 / 7,
      'target_busy': 2 / 7,
      'source_busy_after': 0,
      'target_busy_after': 3 / 7,
      'source_emptied': 1,
      'sent_before_s': _log(4 / 7),
      'sent_after_s': 0,
      'messages_change': _log(-2e-3),
      'critical_sent_before_s': _log(4 / 7),
      'target_affinity': 1,
      'critical_share': 1,
      'waiting_s': 0,
      'least_slack_s': 0,
      'late_inputs_s': 0,
      'late_outputs_s': 0,
      'hastened_s': _log(4 / 7),
      'wire_busy': 2 / 7,
  }.items():
    assert found[name][0] == pytest.approx(value, abs=1e-5), name


def test_a_chain_that_is_pulled_apart():
  found = _described(graphs.chain(3), [1, 1, 1], [[1, 2, 1]])
  for name, value in {
      'sent_change_s': _log(4 / 3),
      'late_inputs_s': _log(2 / 3),
      'late_outputs_s': _log(2 / 3),
      'delayed_s': _log(4 / 3),
      'target_empty': 1,
      'crowding_s': 0,
  }.items():
    assert found[name][0] == pytest.approx(value, abs=1e-5), name


def test_what_has_time_is_not_late():
  # op1 takes 10 s on another device; op2 could end 9 s later.
  graph = graphs.make_graph([(0, 2, 0), (1, 3, 0), (2, 3, 0)])
  seconds = np.array([[1.], [10.], [1.], [1.]])
  found = _described(graph, [1, 2, 1, 1], [[1, 2, 2, 1], [1, 2, 0, 1]],
                     seconds=seconds)
  # Its result still would be there in time, by a message of a second.
  assert found['late_outputs_s'].tolist() == [0, 0]
  assert found['critical_share'] == pytest.approx([0, 0], abs=1e-2)
  # On the device of op1 it would run while that one does.
  assert found['target_busy_then'] == pytest.approx([1, 0], abs=.01)
  assert found['crowding_s'][0] > 0 == found['crowding_s'][1]


def test_a_step_is_retimed_by_hand():
  # Each op takes 1 s, each tensor 2 s.
  found = _described(graphs.chain(3), [1, 1, 1], [[1, 2, 1], [1, 1, 2]])
  assert found['retimed_change_s'] == pytest.approx(
      [_log(4 / 3), _log(2 / 3)], abs=1e-4)


def test_a_retimed_op_waits_for_earlier_ops_of_its_device():
  # op1 waits for op0. op3 starts last, since op2 occupies its device.
  graph = graphs.make_graph([(0, 1, 0)], num_ops=4)
  seconds = np.array([[1.], [1.], [3.], [3.]])
  found = _described(graph, [1, 1, 2, 2], [[1, 3, 2, 3]],
                     clusters.make_cluster(3), seconds)
  # op1 runs from 2 to 3 s and op3 after it, though its input is there at once.
  assert found['retimed_change_s'] == pytest.approx([0], abs=1e-4)


@pytest.mark.parametrize(
    'seconds, now, moved',
    [
        ([1, 1, 1], [1, 1, 1], [1, 1, 2]),
        ([1, 1, 1], [1, 1, 1], [1, 2, 1]),
        ([1, 1, 1, 1], [1, 1, 1, 2], [2, 2, 2, 2]),
        # Op 2 launches no kernel, so the host has done with it long before the
        # kernel of op 1 starts. But it hands on what op 1 computes.
        ([1, 1, 0, 1], [1, 1, 1, 1], [1, 1, 1, 2]),
        ([1, 1, 0, 1], [1, 1, 1, 1], [1, 1, 2, 2]),
        ([1, 1, 0, 1], [1, 1, 1, 2], [1, 1, 1, 1]),
        ([1, 1, 0, 1], [1, 1, 1, 2], [1, 1, 2, 2]),
    ])
def test_a_step_of_gpus_is_retimed_as_it_is_simulated(seconds, now, moved):
  graph, cluster = graphs.chain(len(seconds),
                                1_200_000), presets.preset('2xP100')
  of_devices = np.repeat(1e-4 * np.array(seconds)[:, None], 3, axis=1)
  found = _described(graph, now, [moved], cluster, of_devices)
  simulated = simulator.Simulator(cluster,
                                  fixed_costs.FixedCostModel(of_devices))
  before, after = (simulated.schedule(
      graph, placement_lib.from_groups(graph, np.array(row, np.int32),
                                       cluster)).step_time_s
                   for row in (now, moved))
  assert _unlog(found['retimed_change_s'][0]) == pytest.approx(
      after / before - 1, abs=.02)


def test_a_kernel_that_waits_lets_later_ones_run_before():
  # op1, op2 and op3 take a second each on GPU:1. op1 has to wait for its input
  # of 2 s if op0 moves; op2 and op3 need nothing.
  cluster = _with_streams()
  found = _described(graphs.make_graph([(0, 1, 100)], num_ops=4), [2, 2, 2, 2],
                     [[1, 2, 2, 2]], cluster)
  # 1 s of op0, 2 s of its tensor and 1 s of op1; before, four ops of a second.
  assert found['retimed_change_s'] == pytest.approx([0], abs=1e-3)


def test_what_precedes_an_op_without_kernel_has_its_slack():
  # On GPU:0 op0 and op1 run for a second each. op2 launches no kernel, so the
  # host has done with it at once. It sends to op4 in a second. On GPU:1 op4
  # waits for op3, which takes 20 s.
  graph = graphs.make_graph([(1, 2, 0), (2, 4, 0), (3, 4, 0)])
  seconds = np.array([[1.], [1.], [0.], [20.], [1.]])
  found = _described(graph, [1, 1, 1, 2, 2], [[1, 2, 1, 2, 2]], _with_streams(),
                     seconds)
  # op1 could end 17 s later, of a step of 21 s.
  assert _unlog(found['least_slack_s'][0]) == pytest.approx(17 / 21, abs=1e-3)


@hypothesis.settings(max_examples=40, deadline=None)
@hypothesis.given(seed=st.integers(0, 1 << 30), num_ops=st.integers(2, 60))
def test_retiming_is_that_of_a_naive_sweep(seed, num_ops):
  rng = np.random.default_rng(seed)
  graph, cluster = graphs.random_graph(seed, num_ops), clusters.make_cluster(3)
  seconds = rng.exponential(size=(num_ops, cluster.num_devices))
  now, then = rng.integers(4, size=(2, graph.num_groups))
  then[0] = (now[0] + 1) % 4  # Something moves.
  found = _described(graph, now, [then], cluster, seconds)
  costs = fixed_costs.FixedCostModel(seconds)
  step = simulator.Simulator(cluster, costs, threads=1).schedule(
      graph, placement_lib.from_groups(graph, now, cluster))
  position = np.argsort(graph.topological_order)
  order = np.lexsort((position, step.dispatched_s))
  before, after = (
      _swept(graph, row, cluster, seconds, order) for row in (now, then))
  change = np.clip((after - before) / step.step_time_s, -1e3, 1e3)
  assert found['retimed_change_s'][0] == pytest.approx(_log(change), abs=1e-3)


def _swept(graph: op_graph.OpGraph, devices: np.ndarray, cluster,
           seconds: np.ndarray, order: np.ndarray) -> float:
  """The end of a step in which the ops of a device keep their order."""
  latency_s, bytes_per_s, _ = cluster.link_arrays
  of_op = devices[graph.groups]
  ready = np.zeros(graph.num_ops)
  free = {d: 0. for d in range(cluster.num_devices)}
  links: dict[tuple[int, int], float] = {}
  end = np.zeros(graph.num_ops)
  for op in order:
    device, work = int(of_op[op]), seconds[op, of_op[op]]
    start = ready[op]
    if cluster.devices[device].slots == 1:
      start = max(start, free[device])
      free[device] = start + work
    end[op] = start + work
    nets: dict[int, list[int]] = {}
    for (source, target), tensor in zip(graph.edges, graph.edge_tensors):
      if source == op:
        nets.setdefault(int(tensor), []).append(int(target))
    for tensor, targets in nets.items():
      size = graph.tensor_bytes[tensor] if tensor >= 0 else 0
      arrived = {device: end[op]}
      for target in targets:
        there = int(of_op[target])
        if there not in arrived:
          link = device, there
          arrived[there] = (max(links.get(link, 0.), end[op])
                            + size / bytes_per_s[link] + latency_s[link])
          if size:
            links[link] = arrived[there]
        ready[target] = max(ready[target], arrived[there])
  return float(end.max())


def test_memory_that_comes_is_seen():
  graph = graphs.make_graph(num_ops=2, param_bytes=[60, 70])
  cluster = clusters.make_cluster(2, memory_bytes=100)
  found = _described(graph, [1, 2], [[2, 2], [1, 2]], cluster)
  assert found['target_full'][0] == pytest.approx(.7)
  assert found['target_full_after'][0] == pytest.approx(1.3)
  assert found['overflow'][0] == 0
  assert found['overflow_after'][0] == pytest.approx(_log(.3), abs=1e-5)


def test_what_does_not_move_has_no_features():
  found = _described(graphs.chain(3), [1, 2, 1], [[1, 2, 1]])
  assert not np.stack(list(found.values())).any()


@hypothesis.settings(max_examples=40, deadline=None)
@hypothesis.given(seed=st.integers(0, 1 << 30), num_ops=st.integers(2, 60))
@hypothesis.example(seed=3011, num_ops=4)  # Sends for thousands of steps.
def test_what_is_sent_is_what_the_cut_says(seed, num_ops):
  rng = np.random.default_rng(seed)
  graph = graphs.random_graph(seed, num_ops)
  cluster = clusters.make_cluster(3)
  now, then = rng.integers(4, size=(2, graph.num_groups))
  found = _described(graph, now, [then], cluster)

  def sent(devices: np.ndarray) -> tuple[int, float]:
    """Messages and their seconds; all control edges of an op are one."""
    of_op = devices[graph.groups]
    pairs = {(int(t) if t >= 0 else -1 - int(s), int(of_op[d]))
             for (s, d), t in zip(graph.edges, graph.edge_tensors)
             if of_op[s] != of_op[d]}
    return len(pairs), sum(
        1 + (graph.tensor_bytes[t] / 100 if t >= 0 else 0) for t, _ in pairs)

  (messages, seconds), (messages_then, seconds_then) = sent(now), sent(then)
  assert _unlog(found['messages_change'][0]) * 1e3 == pytest.approx(
      messages_then - messages, abs=.01 * max(messages_then, 1))
  change = _unlog(found['sent_change_s'][0])
  before = _unlog(found['sent_before_s'][0])
  # A feature does not tell more than so many steps apart.
  if before > 1e-6 and max(abs(change), before) < _MOST_STEPS:
    assert change / before == pytest.approx(
        (seconds_then - seconds) / _touched(graph, now, then), abs=.02)


def _touched(graph: op_graph.OpGraph, now: np.ndarray,
             then: np.ndarray) -> float:
  """Seconds sent of tensors that have anything to do with what moves."""
  of_op, moves = now[graph.groups], (now != then)[graph.groups]
  nets: dict[int, list[tuple[int, int]]] = {}
  for (s, d), t in zip(graph.edges.tolist(), graph.edge_tensors.tolist()):
    nets.setdefault(t if t >= 0 else -1 - s, []).append((s, d))
  total = 0.
  for net, ends in nets.items():
    crossing = [(s, d) for s, d in ends if graph.groups[s] != graph.groups[d]]
    if any(moves[s] or moves[d] for s, d in crossing):
      targets = {of_op[d] for s, d in crossing if of_op[s] != of_op[d]}
      size = graph.tensor_bytes[net] / 100 if net >= 0 else 0
      total += len(targets) * (1 + size)
  return total


@hypothesis.settings(max_examples=20, deadline=None)
@hypothesis.given(seed=st.integers(0, 1 << 30))
def test_numbers_of_devices_do_not_matter(seed):
  rng = np.random.default_rng(seed)
  graph = graphs.random_graph(seed, 40)
  now = rng.integers(1, 4, size=graph.num_groups)
  then = np.where(rng.random(graph.num_groups) < .3, 1, now)
  then = np.where(now == 2, then, now)  # From one device to another.
  named = np.array([0, *(1 + rng.permutation(3))])
  cluster = clusters.make_cluster(3)
  one = _described(graph, now, [then], cluster)
  other = _described(graph, named[now], [named[then]], cluster)
  for name, value in one.items():
    assert other[name] == pytest.approx(value, abs=1e-4), name


@pytest.mark.parametrize('name',
                         ['cpu', '2xP100', '2xP100+2xK40', '2x2xV100-ib'])
def test_any_cluster_and_any_move_can_be_described(name):
  cluster = presets.preset(name)
  rng = np.random.default_rng(0)
  for seed in range(5):
    graph = graphs.random_graph(seed, 50)
    rows = rng.integers(cluster.num_devices, size=(9, graph.num_groups))
    found = _described(graph, rows[0], rows[1:], cluster)
    assert max(np.abs(column).max() for column in found.values()) < 20


def test_threads_do_not_matter(monkeypatch):
  graph, cluster = graphs.random_graph(1, 900), clusters.make_cluster(3)
  rng = np.random.default_rng(1)
  now = rng.integers(4, size=graph.num_groups).astype(np.int32)
  rows = np.where(
      rng.random((200, graph.num_groups)) < rng.random((200, 1)), 1,
      now).astype(np.int32)

  def found(threads):
    monkeypatch.setattr(featurizer.cores, 'own', lambda: threads)
    moves = featurizer.MoveFeaturizer(
        graph, cluster,
        fixed_costs.FixedCostModel(np.ones((900, cluster.num_devices))))
    moves.observe(now)
    return moves.describe(rows)

  alone, *others = [found(threads) for threads in (1, 2, 7)]
  for other in others:
    np.testing.assert_array_equal(alone, other)
