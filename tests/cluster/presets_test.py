import re

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import card_memory
from gdp_grappler.cluster import device_figures
from gdp_grappler.cluster import presets
from helpers import work

_SOME = ('haswell+2xP100', '2xP100+2xK40', '2x8xV100-ib', '4xcpu-eth10',
         '2x2xP100-eth10', '3x1xK40-eth25', '2x4xH100-ib400', 'P100')

# A switch for every two cards, a socket for every four: the rest continue it.
_COUNTS = re.compile('(1|2|3|5|8|9|16)x')


@pytest.mark.parametrize(
    'name', [*(name for name in presets.NAMES if _COUNTS.match(name)), *_SOME])
def test_every_preset_is_whole_and_symmetric(name):
  cluster = presets.preset(name)
  assert cluster.name == name and presets.is_preset(name)
  latency, bandwidth, channels = cluster.link_arrays
  others = ~np.eye(cluster.num_devices, dtype=bool)
  assert (latency[others] > 0).all() and np.isfinite(bandwidth[others]).all()
  assert (channels[others] >= 0).all()
  assert (latency == latency.T).all() and (bandwidth == bandwidth.T).all()
  ends = {(l.source, l.target): set(l.channels) for l in cluster.links}
  assert all(wires.isdisjoint(ends[b, a]) for (a, b), wires in ends.items())


@pytest.mark.parametrize('name, gpus', [('2xP100', 2), ('4xP100', 4),
                                        ('8xP100', 8), ('16xK40', 16),
                                        ('cpu', 0), ('2xP100+3xK40', 5)])
def test_devices_of_one_host(name, gpus):
  cluster = presets.preset(name)
  assert [d.type for d in cluster.devices] == ['CPU'] + ['GPU'] * gpus
  assert [d.short_name for d in cluster.devices[1:]
         ] == [f'GPU:{i}' for i in range(gpus)]
  assert all('/job:localhost/' in d.name for d in cluster.devices)
  assert len(set(cluster.compute_units)) == gpus + 1
  assert len(set(cluster.memory_pools)) == gpus + 1


def test_hosts_are_tasks():
  cluster = presets.preset('2x2xP100-eth10')
  assert [d.name for d in cluster.devices] == [
      f'/job:worker/replica:0/task:{task}/device:{device}' for task in range(2)
      for device in ('CPU:0', 'GPU:0', 'GPU:1')
  ]
  assert cluster.host == 0


def test_p100_is_as_it_was():
  device = presets.preset('2xP100').devices[1]
  assert device.memory_bytes == 15_403 * 2**20
  assert (device.peak_flops, device.efficiency) == (9.3e12, 0.7)
  assert device.bandwidth_bytes_per_s == 732e9
  latency, bandwidth, channels = presets.preset('2xP100').link_arrays
  assert latency[0, 1] == latency[1, 2] == 1e-5
  assert bandwidth[0, 1] == bandwidth[1, 2] == 12e9
  into, out = channels[0, 1], channels[1, 0]
  assert set(into).isdisjoint(out)
  assert set(channels[1, 2]) & set(out) and set(channels[2, 1]) & set(into)
  assert set(channels[0, 1]).isdisjoint(channels[0, 2])


def test_slots_together_are_the_chip():
  host = presets.preset('2xP100').devices[0]
  assert host.slots == 2
  assert host.slots * host.peak_flops == pytest.approx(14 * 2.6e9 * 32)
  assert host.slots * host.bandwidth_bytes_per_s == pytest.approx(76.8e9)
  assert presets.preset('8xV100').devices[0].slots == 4


def test_cpu_takes_as_long_as_hdp_saw():
  """HDP's table: 4.1 times a K40's on Inception, 4.4 on RNNLM."""
  host, card = presets.preset('2xK40').devices[:2]
  rates = [d.slots * d.peak_flops * d.efficiency for d in (host, card)]
  assert 4 < rates[1] / rates[0] < 5


def test_four_gb200_have_two_grace_processors():
  """A tray had one, with half of the slots and of the memory."""
  two, four = (presets.preset(f'{n}xGB200').devices[0] for n in (2, 4))
  assert four.slots == 2 * two.slots
  assert four.memory_bytes == 2 * two.memory_bytes


def test_v100_beyond_a_dgx1_are_a_dgx2():
  eight, nine = presets.preset('8xV100'), presets.preset('9xV100')
  assert eight.devices[1].memory_bytes == 14_824 * 2**20
  assert nine.devices[1].memory_bytes == 30_995 * 2**20
  assert set(nine.link_arrays[1][1, 2:].tolist()) == {6 * 23e9}


def test_every_card_keeps_its_data_sheet():
  for name, card in device_figures.CARDS.items():
    device = presets.preset(f'1x{name}').devices[1]
    assert device.peak_flops == card.peak_flops
    # TensorFlow gets most of it, but neither all nor what is left free.
    assert .75 * card.memory_bytes < device.memory_bytes < card.memory_bytes
    assert device.memory_margin == card_memory.MARGIN


@pytest.mark.parametrize(
    'name, message',
    [('', 'Unknown cluster "". Give a preset '),
     ('2xp100', 'Did you mean "2xP100"?'), ('2xP10', 'Did you mean "2xP100"?'),
     ('2x8xV100-ibb', '"ibb" is not a network'),
     ('2x8xA100ib', 'Did you mean "2x8xA100-ib"?'),
     ('17xP100', 'at most 16 cards'), ('12xP100+5xK40', 'at most 16 cards'),
     ('0xP100', 'Unknown'), ('22xP100 ', 'Unknown'), ('2xP100\n', 'Unknown'),
     ('2x8xV100', '2 hosts need a network'), ('8xV100-ib', 'there is one'),
     ('17x1xP100-ib', 'it has 17 hosts, and presets have 1 to 16;'),
     ('100x2xP100-eth10', 'it has 100 hosts, and presets have 1 to 16;'),
     ('100xcpu-eth10', 'it has 100 hosts'), ('100xP100', 'at most 16 cards'),
     ('999999999xP100', 'at most 16 cards'),
     ('2x1xP100+1xK40-ib', 'of one kind'), ('cpu+cpu', 'Unknown'),
     ('2xTPU', 'Name GPUs, such as'), ('v4-8', 'TPUs run a step'),
     ('2xcpu', 'need a network'), ('2xP100-', 'is not a network'),
     ('4xH1000:2', 'Did you mean "4xH100:2"?'),
     ('2xP100+2xK4O', 'Did you mean "2xP100+2xK40"?'),
     ('haswel+2xP100', 'Did you mean "haswell+2xP100"?'),
     ('1xH100:5', 'logical GPUs'), ('1xH100:0', 'logical GPUs'),
     ('8xH100:3', 'logical GPUs'), ('2xFOO', '"FOO" is not a card'), ('x', '')])
def test_unknown_presets(name, message):
  with pytest.raises(errors.ClusterError) as error:
    presets.preset(name)
  assert message in str(error.value)
  assert f'Unknown cluster "{name}"' in str(error.value)
  # A screen of grammar hid what was meant.
  assert len(str(error.value)) < 280
  assert not presets.is_preset(name)


@pytest.mark.parametrize('name, example', [('1x2xP100-ib', '2x2xP100-ib'),
                                           ('8xV100-eth25', '2x8xV100-eth25'),
                                           ('P100-ib', '2x1xP100-ib'),
                                           ('1xcpu-ib', '2xcpu-ib'),
                                           ('2xP100+2xK40-ib', '2x8xV100-ib')])
def test_a_network_for_one_host_suggests_a_preset(name, example):
  with pytest.raises(errors.ClusterError,
                     match=rf'there is one; write for example {example}\.'):
    presets.preset(name)
  assert presets.is_preset(example)


def test_work_of_a_large_cluster_grows_with_its_links():

  def calls_per_link(name: str) -> float:
    presets.preset.cache_clear()
    calls = work.calls(lambda: presets.preset(name))
    return calls / len(presets.preset(name).links)

  assert presets.preset('4x8xA100-ib').num_devices == 36
  assert calls_per_link('4x8xA100-ib') < 1.1 * calls_per_link('2x8xA100-ib')


def test_a_card_in_parts():
  cluster = presets.preset('1xH100:2')
  whole = presets.preset('1xH100').devices[1]
  assert cluster.device_labels == ('CPU:0', 'GPU:0', 'GPU:1')
  assert cluster.cut_cards.tolist() == [-1, 0, 0]
  assert cluster.contexts.tolist() == [0, 1, 1]
  assert cluster.compute_units.tolist() == [0, 1, 2]
  for part in cluster.devices[1:]:
    assert part.memory_bytes == whole.memory_bytes // 2
    assert part.peak_flops == whole.peak_flops
    assert part.resident_threads == whole.resident_threads == 132 * 2048
  # Both ways are through one memory.
  latency, bandwidth, channels = cluster.link_arrays
  assert bandwidth[1, 2] == pytest.approx(1.31e12, rel=.01)
  assert latency[1, 2] == latency[0, 1]
  assert channels[1, 2].tolist() == channels[2, 1].tolist()
  # Both parts have the card's one connection to the host.
  assert channels[0, 1].tolist() == channels[0, 2].tolist()


def test_cards_in_parts_beside_others():
  cluster = presets.preset('2xP100:3+1xK40')
  assert cluster.cut_cards.tolist() == [-1, 0, 0, 0, 1, 1, 1, -1]
  pairs = cluster.link_arrays[2]
  between = presets.preset('2xP100+1xK40')
  assert cluster.link_arrays[1][1, 4] == between.link_arrays[1][1, 2]
  assert pairs[1, 4].tolist() == pairs[3, 6].tolist()


def test_one_part_is_the_card():
  cut = presets.preset('2xV100:1')
  assert cut.devices == presets.preset('2xV100').devices
