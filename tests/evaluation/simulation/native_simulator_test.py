"""What is handed to C++; what C++ makes of it has tests of its own."""

import dataclasses
import os
import pathlib
import re
import sys

import numpy as np
import pytest

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.evaluation.costs import cost_model
from gdp_grappler.evaluation.simulation import native_simulator
from helpers import clusters
from helpers import fresh

# Sources are not installed.
_SOURCE = (pathlib.Path(__file__).parents[3] / 'gdp_grappler' / 'evaluation'
           / 'simulation' / 'simulator.cc').read_text()

_EXITS = '''
import sys
import threading
import numpy as np
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from helpers import graphs
simulator = simulator_lib.Simulator(presets.preset('2xP100'), threads=1)
graph = graphs.random_graph(0, 3000)
devices = np.ones((16, graph.num_ops), np.int32)
running = threading.Event()
def simulate():
  while True:
    simulator.price(graph, devices)
    running.set()
threading.Thread(target=simulate, daemon=True).start()
running.wait()
sys.exit(7)
'''


@pytest.mark.parametrize('name, structure',
                         [('GdpGraph', native_simulator._NativeGraph),
                          ('GdpCluster', native_simulator._NativeCluster)])
def test_structures_are_those_of_c(name, structure):
  body = re.search(rf'struct {name} {{(.*?)}};', _SOURCE, re.DOTALL)[1]
  declared = re.sub(r'//.*', '', body).split(';')
  names = [
      re.sub(r'.*[ *]', '', part.strip()) for text in declared
      for part in text.split(',') if part.strip()
  ]
  assert names == [field for field, *_ in structure._fields_]


def test_arrays_of_a_cluster():
  cluster = clusters.make_cluster(2, compute=['c', 'g', 'g'])
  cpu = dataclasses.replace(cluster.devices[0], slots=3, copy_s=.5,
                            copy_bytes_per_s=7.)
  gpus = [
      dataclasses.replace(device, launch=cluster_lib.ASYNCHRONOUS,
                          dispatch_s=.25, callback_s=.125, context='card')
      for device in cluster.devices[1:]
  ]
  cluster = dataclasses.replace(cluster, devices=(cpu, *gpus))
  contention = cost_model.Contention(np.array([5, 6, 6]), np.array([.1, .2,
                                                                    .3]))
  arrays = native_simulator._cluster_arrays(cluster, contention)
  (units, pools, slots, copy_s, rates, streams, host, contexts, buses, shares,
   latency_s, _, channels) = (array.tolist() for array in arrays)
  assert (units, pools, slots) == ([0, 1, 1], [0, 1, 2], [3, 1])
  assert (copy_s, rates) == ([.5, 0, 0], [7., np.inf, np.inf])
  assert (streams, contexts) == ([0, 1, 1], [0, 1, 1])
  assert host == [[0.] * 8] + 2 * [[.25, 0, 0, 0, 0, 0, .125, 0]]
  assert (buses, shares) == ([5, 6], [.1, .2, .3])
  assert latency_s[0] == [0, 1, 1] and np.shape(channels) == (3, 3, 2)
  assert all(array.flags.c_contiguous for array in arrays)


def test_an_address_is_that_of_an_array_that_c_can_read():
  array = np.arange(6).reshape(2, 3)
  assert native_simulator._address(array) == array.ctypes.data
  assert native_simulator._address(None) is None
  with pytest.raises(AssertionError):
    native_simulator._address(array.T)


def test_a_program_may_exit_while_a_thread_simulates():
  """The exit once freed the C++ object of the thread, and crashed."""
  done = fresh.run_code(_EXITS, PYTHONPATH=os.pathsep.join(sys.path))
  assert done.code == 7, done.stderr
