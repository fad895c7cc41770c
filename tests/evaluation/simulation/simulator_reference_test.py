"""The simulator against one that is slow and obviously right."""

import dataclasses

import numpy as np
import pytest

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.simulation import native_simulator
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.graph import op_kinds
from helpers import clusters
from helpers import graphs
from helpers import reference_simulator

# Cases of a test. `make fuzz` compares the two on more graphs.
_BLOCK = 25
# Whole numbers make many things happen at one moment, which is where two
# simulators could differ; the last set never does.
_SECONDS = ([1.0], [0.0, 1.0], [0.0, 1.0, 2.0, 5.0], [0.1, 0.7, 1.3, 1e-3])
_CHANNELS = (
    lambda a, b: (f'{a} out', f'{b} in'),
    lambda a, b: ('bus',),
    lambda a, b: (f'{min(a, b)} {max(a, b)}',),
    lambda a, b: ('host',) if 'CPU' in a + b else (f'{a}{b}', f'{b}'),
    # Copy engines, a switch for every two devices, and a card that all share.
    lambda a, b: (f'{a} out', f'{b} in', f'switch {int(a[-1]) // 2}',
                  f'switch {int(b[-1]) // 2}', 'card')[:3 + int(b[-1]) % 3])


def _random_graph(seed, rng):
  graph = graphs.random_graph(seed, int(rng.integers(1, 16)),
                              fan_in=rng.choice([0.7, 1.5, 3]),
                              window=int(rng.choice([2, 5, 16])),
                              control=rng.choice([0, 0.3]),
                              aliases=rng.choice([0, 0.4]))
  # Every second alias is a Merge or a Switch. Every second op without inputs is
  # a constant.
  kinds = {'Identity': ('Identity', 'Merge', 'Identity', 'Switch')}
  reads = set(graph.edges[graph.edge_tensors >= 0, 1].tolist())
  return graph.replace(
      op_types=[
          'Const' if op % 2 and op not in reads else kinds.get(
              kind, [kind] * 4)[op % 4]
          for op, kind in enumerate(graph.op_types)
      ], tensor_bytes=rng.integers(0, 4, len(graph.tensor_ops)) * 50,
      groups=np.arange(graph.num_ops),
      executions=rng.choice([[1, 1, 1], [0, 1, 3]][rng.integers(2)],
                            graph.num_ops), **_random_host_memory(seed, graph))


def _random_host_memory(seed, graph):
  """Tensors that GPUs make, and edges that they read, on their host."""
  rng = np.random.default_rng(seed + 2_000_000)
  share = rng.choice([0, 0.3, 0.7])
  return {
      'made_on_host':
          rng.random(len(graph.tensor_ops)) < share, 'read_on_host':
              (rng.random(len(graph.edges)) < share) & (graph.edge_tensors >= 0)
  }


def _random_cluster(rng):
  cluster = clusters.make_cluster(
      3, latency_s=float(rng.choice([0, 1, 0.3])),
      bandwidth_bytes_per_s=float(rng.choice([50, 100, 37])),
      compute=(None, list('abcc'), list('aaaa'))[rng.integers(3)],
      memory=(None, list('abcc'), list('aaaa'))[rng.integers(3)],
      channels=_CHANNELS[rng.integers(len(_CHANNELS))])
  widest, working = rng.integers(1, 4), rng.random() < 0.5
  devices = [
      dataclasses.replace(
          device, slots=int(rng.integers(1, widest + 1)),
          copy_s=working * float(rng.choice([0, 1, 0.4])),
          copy_bytes_per_s=working * float(rng.choice([0, 50, 77])) or None)
      for device in cluster.devices
  ]
  streams = rng.random(4) < rng.choice([0, 0.5, 1])
  devices = [
      _asynchronous(device, rng) if streams[unit] else device
      for device, unit in zip(devices, cluster.compute_units)
  ]
  return dataclasses.replace(cluster, devices=devices,
                             step_s=float(rng.choice([0, 0, 1, 0.77])))


def _asynchronous(device: cluster_lib.Device,
                  rng: np.random.Generator) -> cluster_lib.Device:
  dispatch_s = float(rng.choice([0, 0.25, 1, 0.3]))
  return dataclasses.replace(
      device, slots=1, copy_s=0., copy_bytes_per_s=None,
      launch=cluster_lib.ASYNCHRONOUS, dispatch_s=dispatch_s,
      lock_s=dispatch_s * float(rng.choice([0, 0.5, 1])),
      context=str(rng.choice(['', 'card'])), **{
          name: float(rng.choice([0, 0.5, 1, 0.4]))
          for name in ('visit_s', 'copy_dispatch_s', 'gap_s', 'switch_s',
                       'callback_s', 'poll_s')
      })


def _random_case(seed):
  """A graph, a cluster, seconds, workspace, placements and priorities."""
  rng = np.random.default_rng(seed)
  graph, cluster = _random_graph(seed, rng), _random_cluster(rng)
  seconds = rng.choice(_SECONDS[rng.integers(4)], (graph.num_ops, 4))
  workspace = 7 * rng.integers(0, rng.choice([1, 30]), (graph.num_ops, 4))
  placements = rng.integers(0, 4, (4, graph.num_ops)).astype(np.int32)
  placements[1] = np.minimum(placements[1], 1)
  placements[2] = placements[2, 0]
  priorities = (None, rng.integers(-1, 2, placements.shape),
                rng.normal(size=placements.shape))[rng.integers(3)]
  return graph, cluster, seconds, workspace, placements, priorities


def _random_contention(seed, cluster):
  """Buses [D] and shares [D]; devices of one unit are on one bus."""
  rng = np.random.default_rng(seed + 1_000_000)
  of_unit = rng.integers(0, 3, cluster.compute_units.max() + 1)
  shares = rng.choice([0, 0.25, 1.], cluster.num_devices)
  return of_unit[cluster.compute_units].tolist(), (
      shares * (rng.random() < .5)).tolist()


def _assert_agrees(seed, simulated, case, contention, **given):
  """Fails if the two simulators price or schedule a placement differently."""
  graph, _, seconds, workspace, placements, priorities = case
  prices = simulated.price(graph, placements, priorities)
  for k, devices in enumerate(placements):
    order = None if priorities is None else priorities[k]
    expected = reference_simulator.ReferenceSimulator(graph, simulated.cluster,
                                                      seconds, devices,
                                                      op_kinds.ALIASES, order,
                                                      workspace, *contention,
                                                      **given)
    assert prices.seconds[k] == expected.step_time, seed
    assert prices.peak_bytes[k].tolist() == expected.memory.peak(), seed
    placement = placement_lib.Placement(devices, simulated.cluster, order)
    _assert_same(simulated.schedule(graph, placement), expected)


@pytest.mark.parametrize('block', range(20))
def test_agrees_exactly_on_random_graphs(block):
  for seed in range(block * _BLOCK, (block + 1) * _BLOCK):
    case = _random_case(seed)
    _, cluster, seconds, workspace, *_ = case
    contention = _random_contention(seed, cluster)
    _assert_agrees(
        seed,
        simulator.Simulator(
            cluster, clusters.FixedCosts(seconds, workspace, *contention), 2),
        case, contention)


def _with_cards(cluster: cluster_lib.Cluster,
                rng: np.random.Generator) -> cluster_lib.Cluster:
  """GPUs with streams of their own, on one card or on two."""
  two = rng.random() < .3
  return dataclasses.replace(
      cluster, devices=tuple(
          dataclasses.replace(_asynchronous(device, rng), compute=device.
                              name, card='b' if two and index > 2 else 'a'
                             ) if device.type == 'GPU' else device
          for index, device in enumerate(cluster.devices)))


@pytest.mark.parametrize('block', range(4))
def test_agrees_exactly_where_cards_are_cut(block):
  for seed in range(block * _BLOCK, (block + 1) * _BLOCK):
    case = _random_case(seed)
    _, cluster, seconds, workspace, *_ = case
    rng = np.random.default_rng(seed + 2_000_000)
    cluster = _with_cards(cluster, rng)
    assert (cluster.cut_cards >= 0).any()
    shares = rng.choice([.1, .25, .3, .5, .7, 1.], seconds.shape)
    contention = _random_contention(seed, cluster)
    _assert_agrees(
        seed,
        simulator.Simulator(
            cluster,
            clusters.FixedCosts(seconds, workspace, *contention, card=shares),
            1), case, contention, card_shares=shares)


@pytest.mark.parametrize('block', range(5))
def test_agrees_exactly_where_dispatch_differs(block):
  for seed in range(block * _BLOCK, (block + 1) * _BLOCK):
    graph, cluster, seconds, workspace, placements, priorities = (
        _random_case(seed))
    rng = np.random.default_rng(seed)
    factors = rng.choice([0., .5, 1., 3., .77], graph.num_ops)
    polls = rng.choice([0., 1., .3, 2.], graph.num_ops)
    launches = rng.integers(1, 4, graph.num_ops) * np.maximum(
        graph.executions, 1)
    work = rng.choice([0., .3, 2.], graph.num_ops)
    costs = clusters.FixedCosts(seconds, workspace)
    layout = dataclasses.replace(
        simulator.Simulator(cluster,
                            costs).layout(graph), dispatch_factors=factors,
        poll_factors=polls, launches=launches, host_work=work)
    found, _ = native_simulator.PreparedGraph(layout).run(
        placements, None if priorities is None else priorities.astype(float), 1)
    expected = [
        reference_simulator.ReferenceSimulator(
            graph, cluster, seconds, devices, op_kinds.ALIASES,
            None if priorities is None else priorities[k], workspace,
            dispatch_factors=factors, poll_factors=polls, launches=launches,
            host_work=work).step_time for k, devices in enumerate(placements)
    ]
    assert found.tolist() == expected, seed


def test_the_cases_have_everything_that_there_is_to_differ_in():
  cases = [_random_case(seed) for seed in range(100)]
  found = [_traits(cluster) for _, cluster, *_ in cases]
  assert {slots for kind in found for slots in kind[0]} == {1, 2, 3}
  assert {channels for kind in found for channels in kind[1]} >= {1, 2, 3, 5}
  assert any(any(kind[2]) for kind in found)
  assert any(cluster.step_s for _, cluster, *_ in cases)
  assert any(workspace.any() for _, _, _, workspace, _, _ in cases)
  assert any((graph.executions == 0).any() for graph, *_ in cases)
  assert any(priorities is not None for *_, priorities in cases)
  slowed = [
      _random_contention(seed, case[1]) for seed, case in enumerate(cases)
  ]
  assert any(
      any(shares) and len(set(buses)) < len(buses) for buses, shares in slowed)


def _traits(cluster):
  """Slots, numbers of channels, and what copying costs."""
  return ([device.slots for device in cluster.devices], [
      len(link.channels) for link in cluster.links
  ], [device.copy_s or device.copy_bytes_per_s for device in cluster.devices])


def _assert_same(schedule, expected):
  ops = range(len(schedule.start_s))
  assert schedule.step_time_s == expected.step_time
  assert schedule.start_s.tolist() == [expected.start[op] for op in ops]
  assert schedule.end_s.tolist() == [expected.end[op] for op in ops]
  assert schedule.dispatched_s.tolist() == [
      expected.dispatched.get(op, expected.start[op]) for op in ops
  ]
  assert schedule.slots.tolist() == [expected.slot[op] for op in ops]
  assert list(
      zip(schedule.transfer_tensors, schedule.transfer_ops,
          schedule.transfer_sources, schedule.transfer_targets,
          schedule.transfer_start_s, schedule.transfer_end_s)) == [
              (-1 if t.tensor is None else t.tensor, t.op, t.source, t.target,
               t.start, t.end) for t in expected.transfers
          ]
  assert list(
      zip(schedule.work_transfers, schedule.work_devices, schedule.work_slots,
          schedule.work_start_s, schedule.work_end_s)) == [
              (w.number, w.device, w.slot, w.start, w.end) for w in sorted(
                  expected.works, key=lambda w: (w.number, not w.sends))
          ]
  for pool in range(len(schedule.peak_bytes)):
    mine = schedule.memory_pools == pool
    assert list(zip(schedule.memory_s[mine],
                    schedule.memory_bytes[mine])) == expected.memory.curve(pool)
