import dataclasses

import pytest

from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.link_timing import line_fit
from gdp_grappler.evaluation.link_timing import ping_pong
from gdp_grappler.reports import cluster_table
from helpers import clusters


def test_equal_devices_and_links_share_a_line():
  text = cluster_table.text(presets.preset('16xA100'))
  assert text.startswith('Cluster 16xA100: 17 devices, 272 links\n')
  assert 'GPU:0 .. GPU:15  16 ' in text
  assert sum('GPU:0 .. GPU:15' in line for line in text.splitlines()) == 2
  assert '276 GB/s' in text and '156 TFLOP/s' in text and '37.47 GiB' in text


def test_different_cards_have_lines_of_their_own():
  text = cluster_table.text(presets.preset('2xP100+2xK40'))
  assert 'GPU:0 .. GPU:1' in text and 'GPU:2 .. GPU:3' in text


def test_what_is_shared_is_said():
  cluster = clusters.make_cluster(2, compute=['c', 'g', 'g'],
                                  memory=['m', 'm', 'm'])
  text = cluster_table.text(cluster)
  assert 'compute (2 devices), memory (3 devices)' in text


def test_tasks_are_called_as_in_plans():
  cluster = presets.preset('2xcpu-eth10')
  text = cluster_table.text(cluster)
  assert 'worker/0/CPU:0 ->' in text and 'worker/1/CPU:0' in text
  channels = {name for link in cluster.links for name in link.channels}
  assert {'worker/0 network out', 'worker/1 network in'} <= channels
  occupied = ' '.join(text.split())  # The table breaks lines.
  assert any(name in occupied for name in channels if 'network' in name)


def test_copies_step_and_notes():
  cluster = clusters.make_cluster(0)
  device = dataclasses.replace(cluster.devices[0], copy_s=1e-4,
                               copy_bytes_per_s=2e9)
  text = cluster_table.text(
      dataclasses.replace(cluster, devices=(device,), step_s=2e-3,
                          notes=('assumed: x',)))
  assert '1 device, 0 links' in text and '100 us + 2 GB/s' in text
  assert 'does nothing: 2 ms\n' in text
  assert text.endswith('note: assumed: x\n')


@pytest.mark.parametrize('bounded', [False, True])
def test_measured_links_show_their_error(bounded):
  cluster = clusters.make_cluster(1)
  line = line_fit.Line(2e-3, 1e9, 0.04, 0.5, bounded)
  timings = ping_pong.Timings(
      1e-3, tuple(ping_pong.PairTimes(a, 1 - a, (1,), line) for a in (0, 1)),
      {})
  text = cluster_table.text(ping_pong.apply(cluster, timings), timings)
  assert 'CPU:0 -> GPU:0' in text and 'GPU:0 -> CPU:0' in text
  assert '1 ms' in text and '4 %' in text and '50 %' in text
  assert ('over 1 GB/s' in text) == bounded
  assert '(measured)' in text
