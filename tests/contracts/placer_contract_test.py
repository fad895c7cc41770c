"""What every registered placer owes; the learned one has tests of its own."""

import dataclasses

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation import simulator
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import registry
from helpers import clusters
from helpers import graphs

pytestmark = pytest.mark.parametrize(
    'name', sorted(set(registry.names()) - {registry.LEARNED}))


def _mixed():
  """A slow and a fast GPU, two CPUs, all of different sizes."""
  preset = presets.preset('4xP100')
  devices = list(preset.devices)
  devices[1] = dataclasses.replace(devices[1], peak_flops=1e12, launch_s=1e-5)
  devices[2] = dataclasses.replace(devices[2], memory_bytes=1 << 31)
  devices[3] = dataclasses.replace(devices[3], type='CPU')
  return dataclasses.replace(preset, devices=tuple(devices))


_CLUSTERS = {'alone': clusters.make_cluster(0), 'one GPU':
             clusters.make_cluster(1), '4xP100': presets.preset('4xP100'),
             'mixed': _mixed()}


def _graph(seed, num_ops=150):
  graph = graphs.random_graph(seed, num_ops)
  rng = np.random.default_rng(seed)
  types = np.ones((num_ops, 2), bool)
  types[:, 1] = (rng.random(graph.num_groups) < 0.8)[graph.groups]
  pins = np.where(rng.random(graph.num_groups) < 0.1, 'CPU:0', '')
  return graph.replace(allowed_types=types, pins=pins[graph.groups].tolist())


def _place(name, graph, cluster, seed=0):
  problem = placer_lib.Problem(graph, cluster, simulator.Simulator(cluster),
                               seed)
  return registry.create(name).place(problem)


@pytest.mark.parametrize('cluster', _CLUSTERS.values(), ids=_CLUSTERS.keys())
@pytest.mark.parametrize('seed', range(3))
def test_placements_are_legal(name, cluster, seed):
  graph = _graph(seed)
  placement = _place(name, graph, cluster, seed)
  assert placement.violations(graph) == ()
  assert placement.cluster == cluster
  assert set(placement.device_strings()) <= set(cluster.device_names)


def test_the_same_seed_gives_the_same_placement(name):
  first, second = (_place(name, _graph(1), _CLUSTERS['mixed'], 5).devices
                   for _ in range(2))
  assert first.tolist() == second.tolist()


def test_pins_of_the_user_are_obeyed(name):
  graph = graphs.chain(20, pins=['GPU:1'] + [''] * 18 + ['GPU:0'],
                       user_pins=[True] + [False] * 18 + [True])
  names = _place(name, graph, _CLUSTERS['4xP100']).device_strings()
  assert names[0].endswith('GPU:1') and names[-1].endswith('GPU:0')


def test_one_op_and_one_group(name):
  cluster = _CLUSTERS['4xP100']
  assert _place(name, graphs.make_graph(num_ops=1), cluster).devices.size == 1
  together = graphs.chain(10, groups=[0] * 10)
  assert len(set(_place(name, together, cluster).devices)) == 1


def test_what_cannot_be_placed_is_refused(name):
  graph = graphs.chain(2, pins=['GPU:9', ''], user_pins=[True, False])
  with pytest.raises(errors.InfeasiblePlacementError, match='GPU:9'):
    _place(name, graph, _CLUSTERS['4xP100'])
