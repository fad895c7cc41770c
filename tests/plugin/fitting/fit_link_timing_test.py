"""Links between two servers, timed by a program that is connected to them."""

import json

import pytest

from gdp_grappler import native
from helpers import fresh
from helpers import warm

_TASKS = [
    '/job:localhost/replica:0/task:0', '/job:worker/replica:0/task:0',
    '/job:worker/replica:0/task:1'
]
_CONNECTED = f'''{warm.MARK}
import json
import tensorflow as tf
from gdp_grappler.evaluation.measuring import local_workers
from gdp_grappler.plugin import task_links
import keras

keras.utils.set_random_seed(0)
model = keras.Sequential([keras.Input((8,), batch_size=16),
                          *[keras.layers.Dense(32) for _ in range(9)]])
model.compile('sgd', 'mse')
losses = []
with local_workers.LocalWorkers(2) as workers:
  for option in (False, {{'guard': False}}):
    if option:
      tf.config.experimental_connect_to_host(list(workers.addresses))
    tf.config.optimizer.set_experimental_options({{'gdp_placement': option}})
    x = tf.ones((16, 8))
    losses.append(model.evaluate(x, tf.ones((16, 32)), verbose=0))
    model.fit(x, tf.zeros((16, 32)), verbose=0)
  names = [d.name for d in tf.config.list_logical_devices('CPU')]
  cluster = task_links.KNOWN.cluster(None, names)
  tf.config.optimizer.set_experimental_options({{'gdp_placement': False}})
print(json.dumps({{'notes': cluster.notes, 'devices': len(cluster.devices),
                  'rates': [l.bandwidth_bytes_per_s for l in cluster.links]}}))
'''


@pytest.mark.e2e
def test_fit_times_the_network_once(tmp_path):
  # Servers preload this library. A fork has the libraries of its parent.
  finished = fresh.run_code(_CONNECTED, GDP_CACHE_DIR=str(tmp_path),
                            LD_PRELOAD=str(native.LOOPBACK_PATH))
  assert finished.results['devices'] == 3
  assert 'measured: the network between tasks' in finished.results['notes']
  assert all(1e6 < rate < 1e12 for rate in finished.results['rates'])
  kept, = tmp_path.glob('networks/*.json')
  assert kept.stat().st_mode & 0o77 == 0
  wires = json.loads(kept.read_text())['wires']
  assert [row[:2] for row in wires] == [[_TASKS[0], _TASKS[1]],
                                        [_TASKS[0], _TASKS[2]],
                                        [_TASKS[1], _TASKS[2]]]
