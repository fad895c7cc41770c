"""Wires between two servers, timed by a program that is connected to them."""

import json
import pathlib

import pytest

from gdp_grappler import digests
from gdp_grappler.plugin import network
from gdp_grappler.plugin.fitting import network_timing
from helpers import fresh

_TASKS = [
    '/job:localhost/replica:0/task:0', '/job:worker/replica:0/task:0',
    '/job:worker/replica:0/task:1'
]
_CONNECTED = '''
import json
import tensorflow as tf
from gdp_grappler.evaluation.measuring import local_workers
from gdp_grappler.plugin import network
import keras

keras.utils.set_random_seed(0)
model = keras.Sequential([keras.Input((8,), batch_size=16),
                          *[keras.layers.Dense(32) for _ in range(9)]])
model.compile('sgd', 'mse')
losses = []
with local_workers.LocalWorkers(2) as workers:
  for option in (False, {'guard': False}):
    if option:
      tf.config.experimental_connect_to_host(list(workers.addresses))
    tf.config.optimizer.set_experimental_options({'gdp_placement': option})
    x = tf.ones((16, 8))
    losses.append(model.evaluate(x, tf.ones((16, 32)), verbose=0))
    model.fit(x, tf.zeros((16, 32)), verbose=0)
  names = [d.name for d in tf.config.list_logical_devices('CPU')]
  cluster = network.KNOWN.cluster(None, names)
  tf.config.optimizer.set_experimental_options({'gdp_placement': False})
print(json.dumps({'notes': cluster.notes, 'devices': len(cluster.devices),
                  'rates': [l.bandwidth_bytes_per_s for l in cluster.links]}))
'''


@pytest.mark.e2e
def test_fit_times_the_network_once(tmp_path):
  finished = fresh.run_code(_CONNECTED, GDP_CACHE_DIR=str(tmp_path))
  assert finished.results['devices'] == 3
  assert 'measured: the network between tasks' in finished.results['notes']
  assert all(1e6 < rate < 1e12 for rate in finished.results['rates'])
  kept, = tmp_path.glob('networks/*.json')
  assert kept.stat().st_mode & 0o77 == 0
  wires = json.loads(kept.read_text())['wires']
  assert [row[:2] for row in wires] == [[_TASKS[0], _TASKS[1]],
                                        [_TASKS[0], _TASKS[2]],
                                        [_TASKS[1], _TASKS[2]]]


@pytest.fixture(name='timed')
def _timed(monkeypatch, tmp_path):
  """A timing over three tasks; how often it timed is counted."""
  monkeypatch.setenv('GDP_CACHE_DIR', str(tmp_path))
  counts = []

  def wire(source, target, end, clock, play):
    del end, clock, play
    counts.append((source, target))
    return network.Wire(1e-4, 1e9)

  monkeypatch.setattr(network_timing, '_wire', wire)
  monkeypatch.setattr(network_timing.devices, 'names',
                      lambda: [f'{task}/device:CPU:0' for task in _TASKS])
  return counts


def test_what_was_timed_is_kept(timed):
  for _ in range(2):
    timing = network_timing.Timing(network.Network())
    timing.once()
    timing.once()
  assert len(timed) == 3


def test_when_the_time_is_over_the_others_are_as_those_that_were_timed(timed):
  known = network.Network()
  network_timing.Timing(known, budget_s=-1.).once()
  assert len(timed) == 1
  cluster = known.cluster(None, network_timing.devices.names())
  assert len({link.bandwidth_bytes_per_s for link in cluster.links}) == 1
  assert 'measured' in cluster.notes[-1]


@pytest.mark.parametrize('bytes_per_s, played', [(1e5, 2), (1e9, 3)])
def test_a_slow_network_is_not_asked_for_more(bytes_per_s, played):
  """Games of 4 MB took a quarter of an hour."""
  now, sizes = [0.], []

  def game(source, end, size, trips):

    def play():
      now[0] += 2 * trips * (1e-4 + size / bytes_per_s) * (source != end)

    sizes.append(size)
    play()
    return play

  wire = network_timing._wire('a', 'b', 100., lambda: now[0], game)
  assert len(set(sizes)) == played
  assert now[0] < 200
  assert wire.bytes_per_s == pytest.approx(bytes_per_s, rel=.05)


@pytest.mark.parametrize('change', ['digest', 'text', 'rows'])
def test_what_is_damaged_is_timed_anew(timed, tmp_path, capfd, change):
  network_timing.Timing(network.Network()).once()
  kept, = pathlib.Path(tmp_path).glob('networks/*.json')
  fields = json.loads(kept.read_text())
  if change == 'digest':
    fields['wires'][0][2] = 7.
  elif change == 'rows':
    fields = digests.sealed({'wires': [1, 2]})
  kept.write_text('{' if change == 'text' else json.dumps(fields))
  network_timing.Timing(network.Network()).once()
  assert len(timed) == 6
  assert 'damaged' in capfd.readouterr().err


def test_who_is_alone_has_no_network(timed, monkeypatch):
  monkeypatch.setattr(network_timing.devices, 'names',
                      lambda: ['/device:CPU:0', '/device:GPU:0'])
  network_timing.Timing(network.Network()).once()
  assert not timed


def test_a_server_that_is_gone_leaves_what_was_assumed(timed, monkeypatch,
                                                       capfd):

  def gone(*_):
    raise RuntimeError('gone')

  monkeypatch.setattr(network_timing, '_wire', gone)
  known = network.Network()
  network_timing.Timing(known).once()
  cluster = known.cluster(None, network_timing.devices.names())
  assert 'measured' not in ' '.join(cluster.notes)
  assert 'cannot be timed' in capfd.readouterr().err
