import dataclasses

import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import cluster_file
from gdp_grappler.cluster import local_devices
from gdp_grappler.cluster import presets
from gdp_grappler.cluster import remote_devices
from gdp_grappler.evaluation.link_timing import line_fit
from gdp_grappler.evaluation.link_timing import ping_pong
from gdp_grappler.evaluation.measuring import local_workers
from helpers import clusters


def _line(latency_s, bytes_per_s):
  return line_fit.Line(latency_s, bytes_per_s, 0.01, 0.1, False)


def _timings(there, back, copies):
  pairs = tuple(
      ping_pong.PairTimes(*ends, (1, 100), line)
      for ends, line in (((0, 1), there), ((1, 0), back)))
  return ping_pong.Timings(3e-3, pairs, copies)


def test_a_round_trip_is_two_latencies_and_one_tensor():
  cluster = ping_pong.apply(clusters.make_cluster(1),
                            _timings(_line(4e-3, 1e6), _line(2e-3, 2e6), {}))
  assert [(l.latency_s, l.bandwidth_bytes_per_s) for l in cluster.links
         ] == [pytest.approx((1.5e-3, 1e6)),
               pytest.approx((1.5e-3, 2e6))]
  assert cluster.step_s == 3e-3
  assert cluster.devices == clusters.make_cluster(1).devices
  assert 'measured: step_s, latency_s' in cluster.notes[0]


def test_channels_stay_as_they_were():
  cluster = clusters.make_cluster(1, channels=lambda a, b: ('one wire',))
  changed = ping_pong.apply(cluster, _timings(_line(1, 1), _line(1, 1), {}))
  assert {l.channels for l in changed.links} == {('one wire',)}


def test_links_get_what_copies_leave():
  copy = _line(1e-3, 4e6)
  cluster = ping_pong.apply(
      clusters.make_cluster(1),
      _timings(_line(8e-3, 1e6), _line(8e-3, 1e6), {(0, 1): copy,
                                                    (1, 0): copy}))
  assert [(d.copy_s, d.copy_bytes_per_s) for d in cluster.devices
         ] == [pytest.approx((1e-3, 4e6))] * 2
  # 4 ms one way less 1 ms at each end; 1 us per byte less 0.25 us at each end.
  assert cluster.links[0].latency_s == pytest.approx(2e-3)
  assert cluster.links[0].bandwidth_bytes_per_s == pytest.approx(2e6)


def test_the_bytes_of_a_transfer_are_shared_where_copies_claim_more():
  copy, whole = _line(3e-3, 1), _line(8e-3, 1e6)
  cluster = ping_pong.apply(
      clusters.make_cluster(1),
      _timings(whole, whole, {(0, 1): copy, (1, 0): copy}))
  ends, link = cluster.devices, cluster.links[0]
  assert [end.copy_s for end in ends] == pytest.approx([3e-3] * 2)
  assert link.latency_s == pytest.approx(0.1 * 4e-3)
  assert 1 / link.bandwidth_bytes_per_s + sum(
      1 / end.copy_bytes_per_s for end in ends) == pytest.approx(1e-6)


def test_copies_beside_compute_are_copy_engines():
  cluster = clusters.make_cluster(1)
  cluster = dataclasses.replace(
      cluster, devices=tuple(
          dataclasses.replace(d, copy_s=1., copy_bytes_per_s=1.)
          for d in cluster.devices))
  changed = ping_pong.apply(
      cluster, _timings(_line(1, 1), _line(1, 1), {(0, 1): None, (1, 0): None}))
  assert [(d.copy_s, d.copy_bytes_per_s) for d in changed.devices
         ] == [(0, None)] * 2


def test_applying_twice_keeps_one_note():
  cluster, timings = clusters.make_cluster(1), _timings(_line(1, 1),
                                                        _line(1, 1), {})
  once = ping_pong.apply(cluster, timings)
  assert ping_pong.apply(once, timings).notes == once.notes


def test_two_logical_cpus_are_timed():
  cluster = local_devices.local_cluster(
      [f'/job:localhost/replica:0/task:0/device:CPU:{i}' for i in range(2)])
  told = []
  timings = ping_pong.measure(cluster, sizes=(1, 1 << 10, 1 << 20),
                              progress=told.append)
  assert told == ['CPU:0 -> CPU:1', 'CPU:1 -> CPU:0']
  assert timings.step_s > 0 and not timings.copies
  assert [(p.source, p.target) for p in timings.pairs] == [(0, 1), (1, 0)]
  changed = ping_pong.apply(cluster, timings)
  assert all(l.latency_s < 0.1 for l in changed.links)
  assert changed.links != cluster.links


@pytest.mark.e2e
def test_links_between_workers_get_a_measured_bandwidth(monkeypatch):
  monkeypatch.setattr(ping_pong, '_COPIES', ((1 << 10, 8), (1 << 20, 2)))
  with local_workers.LocalWorkers(2) as workers:
    cluster = remote_devices.remote_cluster(workers.target)
    timings = ping_pong.measure(cluster, workers.target,
                                sizes=(1, 1 << 12, 1 << 22, 1 << 25))
  assert set(timings.copies) == {(0, 1), (1, 0)}
  changed = ping_pong.apply(cluster, timings)
  assert all(1e7 < l.bandwidth_bytes_per_s < 1e12 for l in changed.links)
  assert changed.links != cluster.links


@pytest.mark.parametrize(
    'name, missing',
    [('2xP100', 'GPU:0, GPU:1'),
     ('8xP100', 'GPU:0, GPU:1, GPU:2, GPU:3 and 4 more'),
     ('2xcpu-ib', '/job:worker/replica:0/task:0/device:CPU:0, /job:worker/'
      'replica:0/task:1/device:CPU:0')])
def test_devices_that_are_not_there(name, missing):
  with pytest.raises(errors.MeasurementError) as error:
    ping_pong.measure(presets.preset(name), sizes=(1, 2))
  assert str(error.value) == (
      f'Transfers of cluster "{name}" cannot be timed: it names {missing}, but '
      'this process has CPU:0. Time it where its devices are; `gdp '
      'cluster --target=grpc://HOST:PORT` times those of other processes.')


def test_notes_no_longer_assume_what_was_measured(tmp_path):
  cluster = remote_devices.of_devices(
      'two', [(f'/job:worker/replica:0/task:{task}/device:CPU:0', 1 << 30)
              for task in range(2)], cores=1)
  cluster = dataclasses.replace(
      cluster, notes=(*cluster.notes,
                      'GPU:0: PCIe of 12 GB/s is assumed; NVML does not tell.',
                      'GPU:0: another card.'))
  assert '10 Gbit/s Ethernet' in cluster.notes[0]
  timed = ping_pong.apply(cluster, _timings(_line(1, 1), _line(1, 1), {}))
  assert timed.notes[:3] == (
      'Speeds are assumed: 1 core per CPU, every GPU a V100.',
      'GPU:0: another card.',
      'measured: step_s, latency_s and bandwidth_bytes_per_s of links')
  path = str(tmp_path / 'timed.pbtxt')
  cluster_file.write(path, timed)
  assert cluster_file.read(path).notes == timed.notes


def test_a_lone_device_keeps_its_notes():
  cluster = remote_devices.of_devices(
      'one', [('/job:worker/replica:0/task:0/device:CPU:0', 1 << 30)])
  timed = ping_pong.apply(cluster, ping_pong.Timings(1e-3, (), {}))
  assert timed.notes[0] == cluster.notes[0]
