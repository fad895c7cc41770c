import dataclasses

import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import calibrated
from gdp_grappler.cluster import cluster_file
from gdp_grappler.cluster import device_figures
from gdp_grappler.cluster import presets
from helpers import calibrations


def test_cards_get_what_was_measured_and_the_host_does_not():
  before = presets.preset('2xH100')
  after = calibrated.applied(before, calibrations.make())
  assert after.devices[0] == before.devices[0]
  card = after.devices[1]
  assert (card.dispatch_s, card.visit_s, card.gap_s) == (5e-6, 1e-6, 2e-6)
  assert card.launch_s == pytest.approx(1e-6)
  assert card.copy_dispatch_s == 12e-6
  # What is left of a hop of 40 us; behind kernels it is 30 us longer.
  latency_s = device_figures.COPY_LATENCY_S
  assert card.callback_s == pytest.approx(40e-6 - 12e-6 - latency_s)
  assert card.poll_s == pytest.approx(30e-6)
  assert after.calibration(card.name) == calibrations.make()
  assert after.calibration(after.devices[0].name) is None
  assert 'gdp calibrate' in after.notes[-1]


def test_links_with_the_host_and_within_a_card():
  before = presets.preset('2xH100')
  one_card = dataclasses.replace(
      before, devices=tuple(
          dataclasses.replace(d, compute='card' if d.type == 'GPU' else 'cpu')
          for d in before.devices))
  for cluster, between in ((one_card, 1.3e12), (before, None)):
    after = calibrated.applied(cluster, calibrations.make())
    rates = {(l.source[-5:], l.target[-5:]): l.bandwidth_bytes_per_s
             for l in after.links}
    assert rates['CPU:0', 'GPU:1'] == 42e9 and rates['GPU:0', 'CPU:0'] == 41e9
    old = next(l.bandwidth_bytes_per_s for l in before.links
               if l.source[-5:] == 'GPU:0' and l.target[-5:] == 'GPU:1')
    assert rates['GPU:0', 'GPU:1'] == (between or old)


@pytest.mark.parametrize('each_s,expected_s', [(2.5e-6, 2.5e-6), (1.3e-6, 0.),
                                               (9e-6, 5e-6)])
def test_the_lock_shows_where_launches_side_by_side_take_longer(
    each_s, expected_s):
  made = calibrations.make(launching_op_s=5e-6, side_by_side_op_s=each_s,
                           side_by_side_devices=4.)
  card = calibrated.applied(presets.preset('1xH100'), made).devices[1]
  assert card.lock_s == expected_s


def test_what_was_not_measured_stays():
  before = presets.preset('1xH100').devices[1]
  made = calibrations.make(launching_op_s=2e-6)
  after = calibrated.applied(presets.preset('1xH100'), made).devices[1]
  assert after == dataclasses.replace(before, dispatch_s=2e-6, lock_s=2e-6)


def test_a_launch_is_at_most_what_an_op_takes_and_the_rest_is_in_the_costs():
  before = presets.preset('1xH100').devices[1]
  made = calibrations.make(launching_op_s=3 * before.dispatch_s)
  after = calibrated.applied(presets.preset('1xH100'), made).devices[1]
  assert after.dispatch_s == before.dispatch_s


def test_only_such_cards_of_a_mixed_cluster():
  cluster = calibrated.applied(presets.preset('1xH100+1xP100'),
                               calibrations.make())
  assert [cluster.calibration(d.name) is not None for d in cluster.devices
         ] == [False, True, False]


# An H200 and an H100 have the same FLOP/s. So a cluster of H100s once got the
# calibration of an H200.
@pytest.mark.parametrize('cluster, card', [('2xP100', calibrations.H100),
                                           ('2xH100', 'NVIDIA H200')])
def test_without_such_a_card_it_is_refused(cluster, card):
  with pytest.raises(errors.ClusterError, match='has no such GPU'):
    calibrated.applied(presets.preset(cluster), calibrations.make(card))


def test_a_card_that_nobody_knows_is_taken_to_be_that_of_the_cluster():
  before = presets.preset('2xP100')
  odd = dataclasses.replace(
      before, devices=tuple(
          dataclasses.replace(d, peak_flops=7e12) if d.type == 'GPU' else d
          for d in before.devices))
  after = calibrated.applied(odd, calibrations.make('Test 9000'))
  assert len(after.calibrated[0].devices) == 2


def test_a_second_calibration_takes_the_place_of_the_first():
  once = calibrated.applied(presets.preset('1xH100'), calibrations.make())
  again = calibrated.applied(once, calibrations.make(launching_op_s=4e-6))
  assert len(again.calibrated) == 1 and again.devices[1].dispatch_s == 4e-6


@pytest.mark.parametrize('first', [{}, {'launching_op_s': 1e-6}])
def test_figures_of_devices_are_those_of_the_second(first):
  """Its shorter launch, other figures of cards and its note stayed."""
  before = presets.preset('2xH100')
  second = calibrations.make(launching_op_s=4e-6, gap_s=2e-6)
  once = calibrated.applied(before, calibrations.make(**first))
  again = calibrated.applied(once, second)
  expected = calibrated.applied(before, second)
  assert again.devices == expected.devices
  assert again.calibrated == expected.calibrated
  assert len(again.notes) == len(before.notes) + 1
  part = calibrated.applied(once, second, once.device_names[1:2])
  assert [note.split(' by ')[0] for note in part.notes[-2:]
         ] == ['measured: GPU:1', 'measured: GPU:0']


def test_cluster_files_keep_it(tmp_path):
  cluster = calibrated.applied(presets.preset('2xH100'), calibrations.make())
  path = str(tmp_path / 'c.json')
  cluster_file.write(path, cluster)
  assert cluster_file.read(path) == cluster
  with pytest.raises(errors.ClusterError, match='End its name in .json'):
    cluster_file.write(str(tmp_path / 'c.pbtxt'), cluster)


def test_a_cluster_file_of_one_that_names_no_device(tmp_path):
  cluster = calibrated.applied(presets.preset('1xH100'), calibrations.make())
  text = cluster.to_json()
  at = text.index('"calibrated"')
  path = tmp_path / 'c.json'
  path.write_text(text[:at] + text[at:].replace('GPU:0', 'GPU:7', 1))
  with pytest.raises(errors.ClusterError, match='names .*GPU:7'):
    cluster_file.read(str(path))
