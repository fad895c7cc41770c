"""Control edges change the order of ops, but no numbers.

One fresh process trains several models on four logical CPUs with a random
placement, without and with control edges.
"""

import re

import pytest

from gdp_grappler.cluster import cluster as cluster_lib
from helpers import fresh

pytestmark = pytest.mark.e2e
_CASES = [
    'dense 0', 'lstm 0', 'branching 0', 'branching 1', 'conditional 0',
    'conditional 1'
]


@pytest.fixture(scope='module')
def results(tmp_path_factory):
  path = tmp_path_factory.mktemp('ordered') / 'cpus.json'
  path.write_text(_four_cpus().to_json())
  return fresh.run('ordered.py', str(path)).results


def _four_cpus():
  """Returns four logical CPUs with cores of their own, so that edges gain."""
  names = [cluster_lib.local_name('CPU', i) for i in range(4)]
  return cluster_lib.Cluster(
      'cpus',
      tuple(
          cluster_lib.Device(name=name, type='CPU', memory_bytes=1 << 34,
                             peak_flops=1e9, efficiency=0.5,
                             bandwidth_bytes_per_s=1e9, launch_s=1e-6,
                             compute=name, memory=name) for name in names),
      tuple(
          cluster_lib.Link(a, b, 1e-6, 1e9, (f'{a} to {b}',)) for a in names
          for b in names if a != b))


@pytest.mark.parametrize('name', [*_CASES, 'session', 'across'])
def test_losses_are_the_same_to_the_last_bit(results, name):
  fifo, ordered = results[name]['fifo'][0], results[name]['ordered'][0]
  assert fifo == ordered
  assert len(set(fifo)) == 6  # The losses change.


@pytest.mark.parametrize('name', _CASES)
def test_the_executors_get_the_edges_that_are_announced(results, name):
  line, = results[name]['lines']
  said = re.search(r'ordered: (\d+) control edges, (\S+) ms for (\S+) ', line)
  more = results[name]['ordered'][1] - results[name]['fifo'][1]
  assert more == (int(said[1]) if said else 0)
  assert not said or float(said[2]) < float(said[3])


def test_there_were_edges(results):
  ordered = {
      name.split()[0] for name in results
      if results[name]['ordered'][1] > results[name]['fifo'][1]
  }
  assert {'dense', 'lstm', 'branching', 'conditional', 'session',
          'across'} == ordered
