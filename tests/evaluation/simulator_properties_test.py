"""What holds for every graph and placement."""

import dataclasses

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import numpy as np

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import simulator
from tests.helpers import clusters
from tests.helpers import graphs
from tests.helpers import reference_simulator

_many = settings(max_examples=100, deadline=None, derandomize=True)
_seeds = st.integers(0, 1 << 30)


def _case(seed, max_ops=200):
  """A graph, its costs [N, 1], the same on each device, and a placement."""
  rng = np.random.default_rng(seed)
  graph = graphs.random_graph(
      seed, int(rng.integers(1, max_ops)), window=int(rng.choice([3, 30])))
  graph = graph.replace(groups=np.arange(graph.num_ops))
  seconds = rng.exponential(1e-3, (graph.num_ops, 1))
  return graph, seconds, rng.integers(0, 3, graph.num_ops)


def _schedule(graph, seconds, devices, cluster):
  return simulator.Simulator(cluster, clusters.FixedCosts(seconds)).schedule(
      graph, placement_lib.Placement(devices, cluster))


def _critical_path(graph, seconds):
  """Seconds of the longest path, transfers left out."""
  end = seconds[:, 0].copy()
  for op in graph.topological_order:
    for consumer in graph.edges[graph.edges[:, 0] == op, 1]:
      end[consumer] = max(end[consumer], end[op] + seconds[consumer, 0])
  return end.max()


@_many
@given(_seeds)
def test_between_the_bounds(seed):
  graph, seconds, devices = _case(seed)
  step_time_s = _schedule(
      graph, seconds, devices, clusters.make_cluster()).step_time_s
  assert step_time_s >= _critical_path(graph, seconds) * (1 - 1e-12)
  assert step_time_s >= seconds.sum() / 3 * (1 - 1e-12)


@_many
@given(_seeds, st.integers(0, 2))
def test_one_device_takes_the_sum_of_the_work(seed, device):
  graph, seconds, _ = _case(seed)
  schedule = _schedule(graph, seconds, np.full(graph.num_ops, device),
                       clusters.make_cluster())
  np.testing.assert_allclose(schedule.step_time_s, seconds.sum(), rtol=1e-12)
  assert schedule.num_transfers == 0


@_many
@given(_seeds)
def test_devices_of_one_unit_are_no_faster_than_one(seed):
  graph, seconds, devices = _case(seed)
  cluster = clusters.make_cluster(compute=['all'] * 3)
  assert _schedule(graph, seconds, devices, cluster
                  ).step_time_s >= seconds.sum() * (1 - 1e-12)


@_many
@given(_seeds)
def test_names_do_not_matter(seed):
  graph, seconds, devices = _case(seed)
  names = np.random.default_rng(seed).permutation(graph.names)
  first, second = (_schedule(g, seconds, devices, clusters.make_cluster())
                   for g in (graph, graph.replace(names=names, name='other')))
  for field in dataclasses.fields(first):
    np.testing.assert_array_equal(
        getattr(first, field.name), getattr(second, field.name))


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
def test_a_unit_runs_and_a_channel_carries_one_thing_at_a_time(seed):
  graph, seconds, devices = _case(seed)
  cluster = clusters.make_cluster(compute=['c', 'g', 'g'])
  schedule = _schedule(graph, seconds, devices, cluster)
  for unit in range(2):
    mine = cluster.compute_units[devices] == unit
    _assert_disjoint(schedule.start_s[mine], schedule.end_s[mine])
  channels = cluster.link_arrays[2][schedule.transfer_sources,
                                    schedule.transfer_targets]
  sizes = graph.tensor_bytes[schedule.transfer_tensors]
  carried = (schedule.transfer_tensors >= 0) & (sizes > 0)
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
  schedule = _schedule(graph, seconds, devices, clusters.make_cluster())
  arrival = {(op, tensor, target): end for op, tensor, target, end in zip(
      schedule.transfer_ops, schedule.transfer_tensors,
      schedule.transfer_targets, schedule.transfer_end_s)}
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
  cluster = clusters.make_cluster(memory=['c', 'g', 'g'])
  schedule = _schedule(graph, seconds, devices, cluster)
  expected = reference_simulator.ReferenceSimulator(
      graph, cluster, np.broadcast_to(seconds, (graph.num_ops, 3)), devices,
      aliases=('Identity',))
  assert (schedule.memory_bytes >= 0).all()
  for time, pool, live in zip(schedule.memory_s, schedule.memory_pools,
                              schedule.memory_bytes):
    assert live == expected.live(time, pool)
  for pool in range(2):
    assert schedule.peak_bytes[pool] == schedule.memory_bytes[
        schedule.memory_pools == pool].max()
    # All that is left in the end are the parameters.
    assert schedule.memory_bytes[schedule.memory_pools == pool][-1] == (
        graph.param_bytes[cluster.memory_pools[devices] == pool].sum())
