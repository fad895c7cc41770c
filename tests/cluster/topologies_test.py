"""Which path a transfer takes, and which transfers disturb each other."""

import itertools

import numpy as np
import pytest

from gdp_grappler.cluster import device_figures
from gdp_grappler.cluster import presets
from gdp_grappler.cluster import topologies
from gdp_grappler.evaluation.simulation import simulator
from helpers import clusters
from helpers import graphs


def _seconds(name, *transfers, size=12_000_000_000):
  """Of tensors sent at once, given as pairs of devices by name.

  Only the wires count: no device hears of a copy late.
  """
  cluster = clusters.synchronous(presets.preset(name))
  ends = [[cluster.device_index(end) for end in pair] for pair in transfers]
  edges = [(2 * i, 2 * i + 1, size) for i in range(len(ends))]
  graph = graphs.make_graph(edges)
  devices = np.array([list(itertools.chain.from_iterable(ends))], np.int32)
  sim = simulator.Simulator(cluster,
                            clusters.FixedCosts(np.zeros(graph.num_ops)),
                            threads=1)
  return float(sim.price(graph, devices).seconds[0])


_ALONE = pytest.approx(1 + 1e-5)  # 12 GB over PCIe 3.


def test_two_cards_behind_a_switch_share_the_way_to_the_host():
  assert _seconds('4xP100', ('GPU:0', 'CPU:0')) == _ALONE
  assert _seconds('4xP100', ('GPU:0', 'CPU:0'),
                  ('GPU:1', 'CPU:0')) == pytest.approx(2 + 2e-5)
  assert _seconds('4xP100', ('GPU:0', 'CPU:0'), ('GPU:2', 'CPU:0')) == _ALONE
  assert _seconds('2xP100', ('GPU:0', 'CPU:0'), ('GPU:1', 'CPU:0')) == _ALONE


def test_cards_of_a_grace_processor_share_no_way_to_it():
  """Two of four GB200 shared a PCIe switch, which such a host has not."""
  alone = _seconds('4xGB200', ('CPU:0', 'GPU:0'))
  assert _seconds('4xGB200', ('CPU:0', 'GPU:0'),
                  ('CPU:0', 'GPU:1')) == pytest.approx(alone)
  assert not any('PCIe' in wire for path in _paths('GB200', 4).values()
                 for wire in path.channels)


def test_both_directions_of_pcie_run_at_once():
  assert _seconds('4xK40', ('GPU:0', 'CPU:0'), ('CPU:0', 'GPU:0')) == _ALONE
  assert _seconds('4xK40', ('GPU:0', 'CPU:0'), ('CPU:0', 'GPU:1')) == _ALONE


def test_peers_behind_a_switch_leave_the_way_to_the_host_alone():
  assert _seconds('4xP100', ('GPU:0', 'GPU:1'), ('GPU:2', 'GPU:3')) == _ALONE
  assert _seconds('4xP100', ('GPU:0', 'GPU:2'),
                  ('GPU:1', 'GPU:3')) == pytest.approx(2 + 2e-5)


def test_bricks_of_a_dgx1():
  size = 46_000_000_000
  one = _seconds('8xV100', ('GPU:0', 'GPU:1'), size=size)
  two = _seconds('8xV100', ('GPU:0', 'GPU:3'), size=size)
  assert one == pytest.approx(2 + 1e-5) and two == pytest.approx(1 + 1e-5)
  none = _seconds('8xV100', ('GPU:0', 'GPU:7'), size=size)
  assert none == pytest.approx(46 / 12 + 2e-5)
  # A pair's bricks are its own.
  assert _seconds('8xV100', ('GPU:0', 'GPU:3'), ('GPU:1', 'GPU:2'),
                  size=size) == two


def test_pairs_behind_nvswitch_do_not_disturb_each_other():
  size = 276_000_000_000
  alone = pytest.approx(1 + 1e-5)
  assert _seconds('8xA100', ('GPU:0', 'GPU:1'), size=size) == alone
  assert _seconds('8xA100', ('GPU:0', 'GPU:1'), ('GPU:2', 'GPU:3'),
                  ('GPU:1', 'GPU:0'), size=size) == alone
  # But two into one do.
  assert _seconds('8xA100', ('GPU:0', 'GPU:7'), ('GPU:1', 'GPU:7'),
                  size=size) == pytest.approx(2 + 2e-5)


def test_hosts_share_their_network_card():

  def send(*tasks_and_gpus, name='2x2xP100-eth10'):
    return _seconds(
        name, *[
            tuple(f'/job:worker/replica:0/task:{task}/device:GPU:{gpu}'
                  for task, gpu in pair) for pair in tasks_and_gpus
        ], size=1_125_000_000)

  assert send(((0, 0), (1, 0))) == pytest.approx(1 + 120e-6)
  assert send(((0, 0), (1, 0)), ((0, 1), (1, 1))) == pytest.approx(2 + 240e-6)
  assert send(((0, 0), (1, 0)), ((1, 1), (0, 1))) == pytest.approx(1 + 120e-6)


def _paths(name, count, sockets=1):
  return topologies.host_paths([device_figures.CARDS[name]] * count, sockets)


@pytest.mark.parametrize('count', [1, 2, 3, 4, 8])
@pytest.mark.parametrize('sockets', [1, 2])
def test_every_pair_has_a_path_that_ends_at_its_cards(count, sockets):
  for name in ('K40', 'P100', 'V100', 'A100', 'RTX3090', 'MI300X'):
    paths = _paths(name, count, sockets)
    assert set(paths) == set(itertools.permutations(range(-1, count), 2))
    for (source, target), path in paths.items():
      # A card is the first and the last thing that a transfer occupies.
      assert source < 0 or path.channels[0].startswith(f'GPU:{source} ')
      assert target < 0 or f'GPU:{target} ' in path.channels[-1]


def test_one_or_two_cards_need_no_switch():
  assert _paths('P100', 2)[0, 1].channels == ('GPU:0 out', 'GPU:1 in')
  assert _paths('P100', 2)[-1, 1].channels == ('GPU:1 in',)


def test_bridges_join_pairs():
  paths = _paths('RTX3090', 4)
  bridge = 4 * .92 * 14.0625e9
  assert paths[0, 1].bandwidth_bytes_per_s == pytest.approx(bridge)
  assert paths[3, 2].bandwidth_bytes_per_s == pytest.approx(bridge)
  assert paths[1, 2].bandwidth_bytes_per_s == 24e9
  assert paths[1, 2].latency_s == 2 * paths[0, 1].latency_s


def test_a_mesh_has_a_link_for_every_pair():
  paths = _paths('MI300X', 8)
  links = {
      path.channels[-1] for path in paths.values()
      if 'peers' in path.channels[-1]
  }
  assert len(links) == 8 * 7


def test_cards_without_peer_access_copy_through_the_host():
  assert (_paths('RTX4090',
                 2)[0, 1].latency_s == 2 * _paths('T4', 2)[0, 1].latency_s)


def test_behind_a_switch():
  paths = _paths('P100', 4)
  assert paths[0, 1].channels == ('GPU:0 out', 'GPU:1 in')
  assert paths[0, 3].channels == ('GPU:0 out', 'PCIe switch 0 up',
                                  'PCIe switch 1 down', 'GPU:3 in')
  assert paths[2, -1].channels == ('GPU:2 out', 'PCIe switch 1 up')


def test_only_peers_cross_the_sockets_each_direction_for_itself():
  for (source, target), path in _paths('P100', 8, sockets=2).items():
    far = min(source, target) >= 0 and (source < 4) != (target < 4)
    found = [c for c in path.channels if c.startswith('sockets')]
    assert found == ([f'sockets {"up" if source < target else "down"}']
                     if far else [])
  # Four cards or fewer are all at one of them.
  assert not any('sockets' in channel
                 for path in _paths('P100', 4, sockets=2).values()
                 for channel in path.channels)


def test_bricks_are_symmetric_and_six_per_card():
  bricks = np.array(topologies.DGX1_BRICKS)
  assert (bricks == bricks.T).all() and (bricks.sum(axis=0) == 6).all()
