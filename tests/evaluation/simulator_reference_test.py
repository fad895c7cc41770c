"""The simulator against one that is slow and obviously right."""

import numpy as np
import pytest

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import simulator
from tests.helpers import clusters
from tests.helpers import graphs
from tests.helpers import reference_simulator

# Whole numbers make many things happen at one moment, which is where two
# simulators could differ; the last set never does.
_SECONDS = ([1.0], [0.0, 1.0], [0.0, 1.0, 2.0, 5.0], [0.1, 0.7, 1.3, 1e-3])
_CHANNELS = (
    lambda a, b: (f'{a} out', f'{b} in'),
    lambda a, b: ('bus',),
    lambda a, b: (f'{min(a, b)} {max(a, b)}',),
    lambda a, b: ('host',) if 'CPU' in a + b else (f'{a}{b}', f'{b}'))


def _random_case(seed):
  rng = np.random.default_rng(seed)
  graph = graphs.random_graph(
      seed, int(rng.integers(1, 16)), fan_in=rng.choice([0.7, 1.5, 3]),
      window=int(rng.choice([2, 5, 16])), control=rng.choice([0, 0.3]),
      aliases=rng.choice([0, 0.4]))
  graph = graph.replace(
      tensor_bytes=rng.integers(0, 4, len(graph.tensor_ops)) * 50,
      groups=np.arange(graph.num_ops))
  cluster = clusters.make_cluster(
      3, latency_s=float(rng.choice([0, 1, 0.3])),
      bandwidth_bytes_per_s=float(rng.choice([50, 100, 37])),
      compute=(None, list('abcc'), list('aaaa'))[rng.integers(3)],
      memory=(None, list('abcc'), list('aaaa'))[rng.integers(3)],
      channels=_CHANNELS[rng.integers(4)])
  seconds = rng.choice(_SECONDS[rng.integers(4)], (graph.num_ops, 4))
  placements = rng.integers(0, 4, (4, graph.num_ops)).astype(np.int32)
  placements[1] = np.minimum(placements[1], 1)
  placements[2] = placements[2, 0]
  return graph, cluster, seconds, placements


def _expected(graph, cluster, seconds, devices):
  return reference_simulator.ReferenceSimulator(
      graph, cluster, seconds, devices, aliases=('Identity',))


@pytest.mark.parametrize('block', range(10))
def test_agrees_exactly_on_random_graphs(block):
  for seed in range(block * 100, (block + 1) * 100):
    graph, cluster, seconds, placements = _random_case(seed)
    simulated = simulator.Simulator(cluster, clusters.FixedCosts(seconds), 2)
    step_times, peaks = simulated.step_times(graph, placements)
    for devices, step_time, peak in zip(placements, step_times, peaks):
      expected = _expected(graph, cluster, seconds, devices)
      assert step_time == expected.step_time, seed
      assert peak.tolist() == expected.peak(), seed
      _assert_same(simulated.schedule(graph, placement_lib.Placement(
          devices, cluster)), expected)


def _assert_same(schedule, expected):
  ops = range(len(schedule.start_s))
  assert schedule.start_s.tolist() == [expected.start[op] for op in ops]
  assert schedule.end_s.tolist() == [expected.end[op] for op in ops]
  assert list(zip(
      schedule.transfer_tensors, schedule.transfer_ops,
      schedule.transfer_sources, schedule.transfer_targets,
      schedule.transfer_start_s, schedule.transfer_end_s)) == [
          (-1 if t.tensor is None else t.tensor, t.op, t.source, t.target,
           t.start, t.end) for t in expected.transfers]
  for pool in range(len(schedule.peak_bytes)):
    mine = schedule.memory_pools == pool
    assert list(zip(schedule.memory_s[mine], schedule.memory_bytes[mine])
               ) == expected.curve(pool)
