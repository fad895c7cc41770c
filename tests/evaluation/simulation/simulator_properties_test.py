"""What holds for every graph and placement."""

import dataclasses

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import numpy as np

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.simulation import simulator
from helpers import clusters
from helpers import graphs
from helpers import reference_simulator

_many = settings(max_examples=100, deadline=None, derandomize=True)
_seeds = st.integers(0, 1 << 30)


def _case(seed, max_ops=200):
  """A graph, its costs [N, 1], the same on each device, and a placement."""
  rng = np.random.default_rng(seed)
  graph = graphs.random_graph(seed, int(rng.integers(1, max_ops)),
                              window=int(rng.choice([3, 30])))
  graph = graph.replace(groups=np.arange(graph.num_ops))
  seconds = rng.exponential(1e-3, (graph.num_ops, 1))
  return graph, seconds, rng.integers(0, 3, graph.num_ops)


def _schedule(graph, seconds, devices, cluster, priorities=None, workspace=0):
  costs = clusters.FixedCosts(seconds, workspace)
  return simulator.Simulator(cluster, costs).schedule(
      graph, placement_lib.Placement(devices, cluster, priorities))


def _cluster(slots=1, step_s=0.0, copies=None, **fields):
  """Three devices with `slots` each, or [3]; `copies` is changes of them."""
  cluster = clusters.make_cluster(**fields)
  devices = [
      dataclasses.replace(device, slots=int(width), **(copies or {}))
      for device, width in zip(cluster.devices, np.broadcast_to(slots, 3))
  ]
  return dataclasses.replace(cluster, devices=devices, step_s=step_s)


def _random_cluster(seed):
  """With slots, costs of copies and one memory for both GPUs."""
  rng = np.random.default_rng(seed)
  return _cluster(rng.integers(1, 4, 3), float(rng.choice([
      0, 0.5
  ])), {'copy_s': float(rng.choice([0, 1e-3])), 'copy_bytes_per_s': 1e9},
                  latency_s=1e-3, bandwidth_bytes_per_s=1e9,
                  memory=['c', 'g',
                          'g'], compute=(None, ['c', 'g',
                                                'g'])[rng.integers(2)])


def _critical_path(graph, seconds):
  """Seconds of the longest path, transfers left out."""
  end = seconds[:, 0].copy()
  for op in graph.topological_order:
    for consumer in graph.edges[graph.edges[:, 0] == op, 1]:
      end[consumer] = max(end[consumer], end[op] + seconds[consumer, 0])
  return end.max()


@_many
@given(_seeds, st.integers(1, 5), st.sampled_from([0.0, 0.25]))
def test_between_the_bounds(seed, slots, step_s):
  graph, seconds, devices = _case(seed)
  work_s = _schedule(graph, seconds, devices, _cluster(
      slots, step_s)).step_time_s - step_s
  assert work_s >= _critical_path(graph, seconds) * (1 - 1e-12)
  assert work_s >= seconds.sum() / (3 * slots) * (1 - 1e-12)


@_many
@given(_seeds)
def test_a_slot_for_each_op_takes_the_critical_path(seed):
  graph, seconds, devices = _case(seed)
  step_time_s = _schedule(graph, seconds, np.zeros_like(devices),
                          _cluster(graph.num_ops)).step_time_s
  np.testing.assert_allclose(step_time_s, _critical_path(graph, seconds),
                             rtol=1e-12)


@_many
@given(_seeds, st.integers(0, 2))
def test_one_device_takes_the_sum_of_the_work(seed, device):
  graph, seconds, _ = _case(seed)
  schedule = _schedule(graph, seconds, np.full(graph.num_ops, device),
                       clusters.make_cluster())
  np.testing.assert_allclose(schedule.step_time_s, seconds.sum(), rtol=1e-12)
  assert len(schedule.transfer_tensors) == 0


@_many
@given(_seeds)
def test_devices_of_one_unit_are_no_faster_than_one(seed):
  graph, seconds, devices = _case(seed)
  cluster = clusters.make_cluster(compute=['all'] * 3)
  assert _schedule(graph, seconds, devices,
                   cluster).step_time_s >= seconds.sum() * (1 - 1e-12)


def _assert_same(first, second):
  for field in dataclasses.fields(first):
    np.testing.assert_array_equal(getattr(first, field.name),
                                  getattr(second, field.name))


@_many
@given(_seeds)
def test_names_do_not_matter(seed):
  graph, seconds, devices = _case(seed)
  names = np.random.default_rng(seed).permutation(graph.names)
  first, second = (_schedule(g, seconds, devices, clusters.make_cluster())
                   for g in (graph, graph.replace(names=names, name='other')))
  _assert_same(first, second)


@_many
@given(_seeds)
def test_numbers_do_not_matter_where_they_decide_nothing(seed):
  """No two ops or transfers end at one moment; priorities decide the rest."""
  graph, seconds, devices = _case(seed)
  rng = np.random.default_rng(seed)
  cluster, number = _random_cluster(seed), rng.permutation(graph.num_ops)
  priorities, old = rng.normal(size=graph.num_ops), np.argsort(number)
  renumbered = graph.replace(edges=number[graph.edges],
                             tensor_ops=number[graph.tensor_ops],
                             op_types=[graph.op_types[op] for op in old],
                             param_bytes=graph.param_bytes[old])
  first = _schedule(graph, seconds, devices, cluster, priorities)
  second = _schedule(renumbered, seconds[old], devices[old], cluster,
                     priorities[old])
  assert first.step_time_s == second.step_time_s
  np.testing.assert_array_equal(first.peak_bytes, second.peak_bytes)
  for field in ('start_s', 'end_s', 'slots'):
    np.testing.assert_array_equal(getattr(first, field),
                                  getattr(second, field)[number])


@_many
@given(_seeds)
def test_priorities_do_not_matter_in_a_chain(seed):
  rng = np.random.default_rng(seed)
  graph = graphs.chain(20).replace(tensor_bytes=rng.integers(0, 1000, 19))
  devices, cluster = rng.integers(0, 3, 20), _random_cluster(seed)
  seconds = rng.exponential(1, (20, 1))
  first, second = (_schedule(graph, seconds, devices, cluster, priorities)
                   for priorities in (None, rng.normal(size=20)))
  _assert_same(first, second)


@_many
@given(_seeds)
def test_equal_priorities_are_none(seed):
  graph, seconds, devices = _case(seed)
  cluster = _random_cluster(seed)
  first, second = (_schedule(graph, seconds, devices, cluster, priorities)
                   for priorities in (None, np.full(graph.num_ops, 3.0)))
  _assert_same(first, second)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(_seeds)
def test_many_in_threads_are_as_one_by_one(seed):
  graph, seconds, _ = _case(seed)
  rng = np.random.default_rng(seed)
  devices = rng.integers(0, 3, (12, graph.num_ops))
  priorities = rng.normal(size=devices.shape)
  cluster = _random_cluster(seed)
  simulated = simulator.Simulator(cluster, clusters.FixedCosts(seconds), 3)
  prices = simulated.price(graph, devices, priorities)
  for k in range(12):
    alone = _schedule(graph, seconds, devices[k], cluster, priorities[k])
    assert prices.seconds[k] == alone.step_time_s
    np.testing.assert_array_equal(prices.peak_bytes[k], alone.peak_bytes)


@_many
@given(_seeds, st.floats(0, 10), st.floats(0, 10), st.floats(1, 1000))
def test_chain_is_never_faster_on_slower_links(seed, latency, more, factor):
  rng = np.random.default_rng(seed)
  graph = graphs.chain(20).replace(tensor_bytes=rng.integers(0, 1000, 19))
  devices = rng.integers(0, 3, 20)
  fast = clusters.make_cluster(latency_s=latency,
                               bandwidth_bytes_per_s=100.0 * factor)
  slow = clusters.make_cluster(latency_s=latency + more,
                               bandwidth_bytes_per_s=100.0)
  assert (_schedule(graph, 1.0, devices, fast).step_time_s
          <= _schedule(graph, 1.0, devices, slow).step_time_s)


@_many
@given(_seeds)
def test_a_slot_runs_and_a_channel_carries_one_thing_at_a_time(seed):
  graph, seconds, devices = _case(seed)
  cluster = _random_cluster(seed)
  schedule = _schedule(graph, seconds, devices, cluster)
  units = np.concatenate([
      cluster.compute_units[devices],
      cluster.compute_units[schedule.work_devices]
  ])
  slots = np.concatenate([schedule.slots, schedule.work_slots])
  start_s = np.concatenate([schedule.start_s, schedule.work_start_s])
  end_s = np.concatenate([schedule.end_s, schedule.work_end_s])
  for unit in range(units.max() + 1):
    widest = max(device.slots
                 for device, u in zip(cluster.devices, cluster.compute_units)
                 if u == unit)
    assert (slots[units == unit] < widest).all()
    for slot in range(widest):
      mine = (units == unit) & (slots == slot)
      _assert_disjoint(start_s[mine], end_s[mine])
  channels = cluster.link_arrays[2][schedule.transfer_sources,
                                    schedule.transfer_targets]
  # Messages have number -1, which takes the empty last entry.
  sizes = np.append(graph.tensor_bytes, 0)[schedule.transfer_tensors]
  carried = sizes > 0
  for channel in range(6):
    mine = carried & (channels == channel).any(axis=1)
    _assert_disjoint(schedule.transfer_start_s[mine],
                     schedule.transfer_end_s[mine])


def _assert_disjoint(start, end):
  order = np.argsort(start, kind='stable')
  assert (start[order][1:] >= end[order][:-1]).all()


@_many
@given(_seeds)
def test_nothing_starts_before_its_inputs_are_there(seed):
  graph, seconds, devices = _case(seed)
  schedule = _schedule(graph, seconds, devices, _random_cluster(seed))
  arrival = {(op, tensor, target): end for op, tensor, target, end in zip(
                 schedule.transfer_ops, schedule.transfer_tensors,
                 schedule.transfer_targets, schedule.transfer_end_s)}
  for number, device, start, end in zip(schedule.work_transfers,
                                        schedule.work_devices,
                                        schedule.work_start_s,
                                        schedule.work_end_s):
    if device == schedule.transfer_sources[number]:
      assert start >= schedule.end_s[schedule.transfer_ops[number]]
      assert schedule.transfer_start_s[number] >= end
    else:
      assert start >= schedule.transfer_end_s[number]
      arrival[schedule.transfer_ops[number], schedule.transfer_tensors[number],
              device] = end
  for (producer, consumer), tensor in zip(graph.edges, graph.edge_tensors):
    there = schedule.end_s[producer]
    if devices[producer] != devices[consumer]:
      assert arrival[producer, tensor, devices[consumer]] > there
      there = arrival[producer, tensor, devices[consumer]]
    assert schedule.start_s[consumer] >= there


@settings(max_examples=40, deadline=None, derandomize=True)
@given(_seeds)
def test_memory_is_the_sum_of_what_lives(seed):
  graph, seconds, devices = _case(seed, max_ops=25)
  rng, cluster = np.random.default_rng(seed), _random_cluster(seed)
  graph = graph.replace(executions=rng.integers(0, 3, graph.num_ops))
  workspace = rng.integers(0, 1 << 20, (graph.num_ops, 3))
  schedule = _schedule(graph, seconds, devices, cluster, workspace=workspace)
  expected = reference_simulator.ReferenceSimulator(
      graph, cluster, np.broadcast_to(seconds, (graph.num_ops, 3)), devices,
      aliases=('Identity',), workspace=workspace)
  assert (schedule.memory_bytes >= 0).all()
  for time, pool, live in zip(schedule.memory_s, schedule.memory_pools,
                              schedule.memory_bytes):
    assert live == expected.memory.live(time, pool)
  for pool in range(2):
    assert schedule.peak_bytes[pool] == schedule.memory_bytes[
        schedule.memory_pools == pool].max()
    # All that is left in the end are the parameters.
    assert schedule.memory_bytes[schedule.memory_pools == pool][-1] == (
        graph.param_bytes[cluster.memory_pools[devices] == pool].sum())
