import dataclasses
import os
import sys

import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler import control_groups
from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import device_figures
from gdp_grappler.cluster import local_devices
from gdp_grappler.cluster import nvml
from gdp_grappler.evaluation.simulation import simulator
from helpers import clusters
from helpers import graphs

_TASK = '/job:localhost/replica:0/task:0/device:'


def test_logical_cpus_share_their_compute_and_memory():
  cluster = local_devices.local_cluster(
      [_TASK + 'CPU:1', _TASK + 'CPU:0', _TASK + 'CPU:2'])
  assert [d.short_name for d in cluster.devices] == ['CPU:0', 'CPU:1', 'CPU:2']
  assert len(set(cluster.compute_units)) == len(set(cluster.memory_pools)) == 1
  assert cluster.devices[0].memory_bytes > 1 << 28


def test_what_cpus_send_costs_both_ends():
  cluster = local_devices.local_cluster(
      [cluster_lib.local_name('CPU', i) for i in range(2)])
  graph = graphs.chain(2, tensor_bytes=4)
  prices = simulator.Simulator(cluster, clusters.FixedCosts(0.))
  together, apart = prices.price(graph, np.array([[0, 0], [0, 1]])).seconds
  sender, receiver = (device.copy_s for device in cluster.devices)
  assert together == 0
  assert apart == pytest.approx(sender + cluster.links[0].latency_s + receiver,
                                rel=1e-3)
  assert sender == receiver > 1e-6


def test_cpus_come_first_and_other_types_are_left_out():
  cluster = local_devices.local_cluster(
      [_TASK + 'GPU:1', _TASK + 'XLA_CPU:0', _TASK + 'GPU:0', _TASK + 'CPU:0'])
  assert [d.short_name for d in cluster.devices] == ['CPU:0', 'GPU:0', 'GPU:1']
  assert cluster.host == 0


def test_numbers_are_numbers():
  names = [f'{_TASK}CPU:{i}' for i in (10, 9, 0)]
  cluster = local_devices.local_cluster(names)
  assert [d.short_name for d in cluster.devices] == ['CPU:0', 'CPU:9', 'CPU:10']


class _Tf:
  """TensorFlow with cards, as far as `local_devices` asks it."""

  __version__ = '2.21.0'

  def __init__(self, *titles, parts=(None,), capability=(6, 0), hidden=0):
    self._titles, self._parts, self._capability = titles, parts, capability
    self._hidden = hidden  # Number of cards, from the first one.
    self.config = self
    self.experimental = self

  def list_physical_devices(self, kind):
    assert kind == 'GPU'
    return [
        _Physical(f'/physical_device:GPU:{i}') for i in range(len(self._titles))
    ]

  def get_visible_devices(self, kind):
    return self.list_physical_devices(kind)[self._hidden:]

  def get_device_details(self, card):
    return {
        'device_name': self._titles[int(card.name[-1])],
        'compute_capability': self._capability
    }

  def get_logical_device_configuration(self, unused_card):
    return [part and _Part(part) for part in self._parts]


@dataclasses.dataclass
class _Physical:
  name: str


@dataclasses.dataclass
class _Part:
  memory_limit: int


class _Nvml:
  """`nvml.Source` with what it is told."""

  def __init__(self, *cards):
    self._cards = list(cards)

  def driver(self):
    return '580.1'

  def cards(self):
    return self._cards


def _local(tf_like, source, monkeypatch, gpus=None):
  monkeypatch.setitem(sys.modules, 'tensorflow', tf_like)
  monkeypatch.delenv('CUDA_VISIBLE_DEVICES', raising=False)
  gpus = len(tf_like.list_physical_devices('GPU')) if gpus is None else gpus
  return local_devices.local_cluster(
      [_TASK + 'CPU:0', *(f'{_TASK}GPU:{i}' for i in range(gpus))], source)


_P100 = nvml.CardFacts('Tesla P100-PCIE-16GB', memory_bytes=17071734784,
                       pcie_generation=3, pcie_lanes=16)


def test_a_known_card_and_what_nvml_tells(monkeypatch):
  cluster = _local(_Tf(_P100.title), _Nvml(_P100), monkeypatch)
  device = cluster.devices[1]
  assert device.memory_bytes == 15_403 << 20
  assert (device.peak_flops, device.bandwidth_bytes_per_s) == (9.3e12, 732e9)
  latency, bandwidth, _ = cluster.link_arrays
  assert latency[0, 1] == 1e-5 and bandwidth[1, 0] == 12e9
  assert not [note for note in cluster.notes if 'GPU' in note]


def test_a_narrow_slot(monkeypatch):
  card = dataclasses.replace(_P100, pcie_lanes=4)
  cluster = _local(_Tf(card.title), _Nvml(card), monkeypatch)
  assert cluster.link_arrays[1][0, 1] == 3e9


def test_an_unknown_card_by_its_clocks(monkeypatch):
  card = nvml.CardFacts('Test 9000', memory_bytes=1 << 33, lanes=1000,
                        clock_hertz=1e9, memory_clock_hertz=1e9,
                        memory_bus_bits=256, pcie_generation=4, pcie_lanes=16)
  cluster = _local(_Tf('Test 9000'), _Nvml(card), monkeypatch)
  device = cluster.devices[1]
  assert device.peak_flops == 2e12 and device.bandwidth_bytes_per_s == 64e9
  # Its capability is not known: the largest reserve, and a context.
  assert device.memory_bytes == (1 << 33) - (2550 << 20)
  assert cluster.link_arrays[1][0, 1] == 24e9
  assert any('Test 9000 is not in the table' in note and 'clocks' in note
             for note in cluster.notes)


@pytest.mark.parametrize('capability, like', [((3, 5), 'K40'), ((7, 5), 'V100'),
                                              ((9, 0), 'H100'), (None, 'P100'),
                                              ((12, 0), 'RTX5090'),
                                              ((99, 0), 'P100')])
def test_without_nvml_an_unknown_card_is_assumed_and_said_to_be(
    capability, like, monkeypatch):
  cluster = _local(_Tf('Test 9000', capability=capability), nvml.NoCards(),
                   monkeypatch)
  assert cluster.devices[1].peak_flops == device_figures.CARDS[like].peak_flops
  notes = ' '.join(cluster.notes)
  assert f'the figures of {like} are assumed' in notes
  assert 'memory of 16 GiB is assumed' in notes
  assert 'PCIe of' in notes


def test_a_known_card_without_nvml(monkeypatch):
  cluster = _local(_Tf('Tesla K40m'), nvml.NoCards(), monkeypatch)
  assert cluster.devices[1].memory_bytes == 10_610 << 20
  assert 'memory of 10.36 GiB is assumed' in ' '.join(cluster.notes)


def test_parts_of_a_card_share_the_card_and_its_wires(monkeypatch):
  cluster = _local(_Tf(_P100.title, parts=(1024, 2048)), _Nvml(_P100),
                   monkeypatch, gpus=2)
  assert [d.memory_bytes for d in cluster.devices[1:]] == [1 << 30, 2 << 30]
  # Each has a stream of its own, and a driver's context with the other.
  assert cluster.compute_units.tolist() == [0, 1, 2]
  assert cluster.cut_cards.tolist() == [-1, 0, 0]
  assert cluster.contexts.tolist() == [0, 1, 1]
  assert cluster.devices[1].resident_threads == 56 * 2048
  assert cluster.memory_pools.tolist() == [0, 1, 2]
  channels = cluster.link_arrays[2]
  assert channels[0, 1].tolist() == channels[0, 2].tolist()
  # What stays on the card goes through its memory: read and written.
  assert cluster.link_arrays[1][1, 2] == .78 * 366e9


def test_hidden_cards_have_no_logical_device(monkeypatch):
  """Each GPU had the figures of another card if the program hid a card."""
  first = dataclasses.replace(_P100, pcie_lanes=8)
  cluster = _local(_Tf(_P100.title, _P100.title, parts=(1024, 2048), hidden=1),
                   _Nvml(first, _P100), monkeypatch, gpus=2)
  assert [d.memory_bytes for d in cluster.devices[1:]] == [1 << 30, 2 << 30]
  assert cluster.cut_cards.tolist() == [-1, 0, 0]
  # The hidden card has a slot of half this width.
  assert cluster.link_arrays[1][0, 1:].tolist() == [12e9, 12e9]


def test_whole_cards_share_nothing(monkeypatch):
  cluster = _local(_Tf(_P100.title, _P100.title), _Nvml(_P100, _P100),
                   monkeypatch)
  assert cluster.cut_cards.tolist() == [-1, -1, -1]
  assert cluster.contexts.tolist() == [0, 1, 2]
  assert [d.card for d in cluster.devices] == ['', '', '']


def test_free_bytes_are_less_what_is_in_use(monkeypatch):
  used = dataclasses.replace(_P100, used_bytes=3 << 30)
  monkeypatch.setitem(sys.modules, 'tensorflow', _Tf(_P100.title, _P100.title))
  monkeypatch.delenv('CUDA_VISIBLE_DEVICES', raising=False)
  idle, busy = local_devices.free_bytes(_Nvml(_P100, used)).values()
  assert idle - busy == 3 << 30
  # Nobody tells how much memory it has.
  assert not local_devices.free_bytes(nvml.NoCards())


def test_cards_behind_one_pcie_switch_share_it(monkeypatch):
  cards = [
      dataclasses.replace(_P100, switch_neighbours=(1 - i,)) for i in range(2)
  ] + [_P100]
  cluster = _local(_Tf(*[_P100.title] * 3), _Nvml(*cards), monkeypatch)
  channels = cluster.link_arrays[2]
  up, other, third = (set(channels[i, 0].tolist()) for i in (1, 2, 3))
  assert up & other and not up & third
  assert not set(channels[1, 2].tolist()) & (up & other)
  assert set(channels[1, 3].tolist()) & (up & other)


def test_nvlink_between_two_cards(monkeypatch):
  cards = [
      nvml.CardFacts('Tesla V100-SXM2-16GB', memory_bytes=16 << 30,
                     pcie_generation=3, pcie_lanes=16, nvlinks=peers)
      for peers in ({1: 2}, {0: 2, 2: 1}, {1: 1})
  ]
  cluster = _local(_Tf(*[c.title for c in cards]), _Nvml(*cards), monkeypatch)
  bandwidth = cluster.link_arrays[1]
  assert bandwidth[1, 2] == 46e9 and bandwidth[2, 3] == 23e9
  assert bandwidth[1, 3] == 12e9


def test_nvswitch(monkeypatch):
  cards = [
      nvml.CardFacts('NVIDIA A100-SXM4-40GB', memory_bytes=40 << 30,
                     pcie_generation=4, pcie_lanes=16, switch_nvlinks=12)
      for _ in range(3)
  ]
  cluster = _local(_Tf(*[c.title for c in cards]), _Nvml(*cards), monkeypatch)
  _, bandwidth, channels = cluster.link_arrays
  assert bandwidth[1, 2] == bandwidth[3, 1] == 276e9
  assert set(channels[1, 2].tolist()).isdisjoint(channels[2, 1].tolist())


def test_cards_are_told_apart_by_title_and_order(monkeypatch):
  slow = nvml.CardFacts('Tesla T4', memory_bytes=1, pcie_generation=3,
                        pcie_lanes=16)
  cards = [
      dataclasses.replace(slow, memory_bytes=4 << 30),
      dataclasses.replace(_P100, memory_bytes=6 << 30),
      dataclasses.replace(_P100, memory_bytes=8 << 30)
  ]
  # CUDA puts the fast ones first.
  cluster = _local(_Tf(_P100.title, _P100.title, slow.title), _Nvml(*cards),
                   monkeypatch)
  assert [d.memory_bytes >> 30 for d in cluster.devices[1:]] == [3, 5, 2]


def test_numbers_of_visible_cards_are_those_of_cuda(monkeypatch):
  """NVML's facts were lost if the fast card is behind a slow one on the bus."""
  slow = nvml.CardFacts('Tesla T4', memory_bytes=4 << 30)
  fast = dataclasses.replace(_P100, memory_bytes=6 << 30, used_bytes=1 << 30)
  monkeypatch.setitem(sys.modules, 'tensorflow', _Tf(_P100.title))
  monkeypatch.setenv('CUDA_VISIBLE_DEVICES', '0')
  source = _Nvml(slow, fast)
  cluster = local_devices.local_cluster([_TASK + 'CPU:0', _TASK + 'GPU:0'],
                                        source)
  assert cluster.devices[1].memory_bytes == (6 << 30) - (2550 << 20)
  assert not [note for note in cluster.notes if 'NVML' in note]
  assert [*local_devices.free_bytes(source).values()
         ] == [cluster.devices[1].memory_bytes - (1 << 30)]


@pytest.mark.parametrize('bricks', [0, 4])
def test_cards_without_direct_copies_go_through_the_host(monkeypatch, bricks):
  """They had the latency of a direct copy."""
  cards = [
      nvml.CardFacts('NVIDIA GeForce RTX 3090', memory_bytes=24 << 30,
                     pcie_generation=4, pcie_lanes=16, nvlinks={1 - i: bricks})
      for i in range(2)
  ]
  cluster = _local(_Tf(*[c.title for c in cards]), _Nvml(*cards), monkeypatch)
  latency_s = cluster.link_arrays[0]
  assert latency_s[1, 2] == (1 if bricks else 2) * latency_s[0, 1]


def test_a_gpu_that_tensorflow_does_not_describe(monkeypatch):
  cluster = _local(_Tf(), nvml.NoCards(), monkeypatch, gpus=1)
  assert 'GPU:0: TensorFlow does not describe it' in ' '.join(cluster.notes)


def test_slots_of_the_host_are_its_cores_at_most():
  device = local_devices.local_cluster([_TASK + 'CPU:0']).devices[0]
  assert 1 <= device.slots <= min(2, len(os.sched_getaffinity(0)))


def test_the_same_machine_is_the_same_cluster():
  assert local_devices.local_cluster(
      [_TASK + 'CPU:0']) == local_devices.local_cluster([_TASK + 'CPU:0'])


def test_without_names_the_devices_of_the_process():
  cluster = local_devices.local_cluster()
  expected = [d.name for d in tf.config.list_logical_devices('CPU')]
  assert [d.name.rsplit('/', 1)[1] for d in cluster.devices if d.type == 'CPU'
         ] == [n.rsplit('/', 1)[1] for n in expected]


def test_no_cpu():
  with pytest.raises(errors.ClusterError, match='no CPU device'):
    local_devices.local_cluster([_TASK + 'GPU:0'])


@pytest.mark.parametrize('own, file, limit, has_limit', [
    ('0::/', 'memory.max', '4096\n', True),
    ('0::/', 'memory.max', 'max\n', False),
    ('0::/', 'memory.max', str(1 << 62), False),
    ('0::/slurm/job', 'slurm/memory.max', '4096\n', True),
    ('3:memory:/job', 'memory/job/memory.limit_in_bytes', '4096\n', True),
    ('3:cpu:/', 'memory/memory.limit_in_bytes', '4096\n', False),
])
def test_a_container_has_the_memory_that_it_may_use(tmp_path, monkeypatch, own,
                                                    file, limit, has_limit):
  """Only the limit of a container's own group of version 2 was seen."""
  monkeypatch.setattr(control_groups, '_ROOT', tmp_path)
  monkeypatch.setattr(control_groups, '_OWN', tmp_path / 'own')
  (tmp_path / 'own').write_text(own)
  path = tmp_path / file
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_text(limit)
  whole = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')
  assert local_devices._host_memory_bytes() == (4096 if has_limit else whole)
