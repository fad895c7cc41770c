"""What is handed to C++; what C++ makes of it has tests of its own."""

import dataclasses
import os
import pathlib
import re
import sys
import types

import numpy as np
import pytest

from gdp_grappler import native
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.evaluation.costs import cost_model
from gdp_grappler.evaluation.simulation import native_simulator
from gdp_grappler.evaluation.simulation import simulator
from helpers import clusters
from helpers import fresh
from helpers import graphs

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


def _fields(name):
  """Names of the fields of a struct in the source."""
  body = re.search(rf'struct {name} {{(.*?)}};', _SOURCE, re.DOTALL)[1]
  declared = re.sub(r'//.*', '', body).split(';')
  return [
      re.sub(r'.*[ *]', '', part.strip()) for text in declared
      for part in text.split(',') if part.strip()
  ]


def test_structures_are_those_of_c(monkeypatch):
  stock, made = native.struct, []

  def watched(**fields):
    made.append([*fields])
    return stock(**fields)

  monkeypatch.setattr(native, 'struct', watched)
  graph = graphs.random_graph(0, 30)
  simulator.Simulator(clusters.make_cluster(2)).price(
      graph, np.ones((1, graph.num_ops), np.int32))
  assert made == [_fields('GdpGraph'), _fields('GdpCluster')]


def test_arrays_of_a_cluster():
  cluster = clusters.make_cluster(2, compute=['c', 'g', 'g'])
  cpu = dataclasses.replace(cluster.devices[0], slots=3, copy_s=.5,
                            copy_bytes_per_s=7.)
  gpus = [
      dataclasses.replace(device, launch=cluster_lib.ASYNCHRONOUS,
                          dispatch_s=.25, callback_s=.125, context='card')
      for device in cluster.devices[1:]
  ]
  cluster = dataclasses.replace(cluster, devices=(cpu, *gpus), step_s=2)
  contention = cost_model.Contention(np.array([5, 6, 6]), np.array([.1, .2,
                                                                    .3]))
  structure = native_simulator._native_cluster(
      types.SimpleNamespace(cluster=cluster, contention=contention,
                            card_shares=None))
  assert isinstance(structure.step_s, float)
  made = structure.arrays
  assert made['units'].tolist() == [0, 1, 1]
  assert made['pools'].tolist() == [0, 1, 2]
  assert made['slots'].tolist() == [3, 1]
  assert made['copy_s'].tolist() == [.5, 0, 0]
  assert made['copy_bytes_per_s'].tolist() == [7., np.inf, np.inf]
  assert made['asynchronous'].tolist() == [0, 1, 1]
  assert made['contexts'].tolist() == [0, 1, 1]
  assert made['host'].tolist() == [[0.] * 8
                                  ] + 2 * [[.25, 0, 0, 0, 0, 0, .125, 0]]
  assert made['buses'].tolist() == [5, 6]
  assert made['contention'].tolist() == [.1, .2, .3]
  assert made['latency_s'][0].tolist() == [0, 1, 1]
  assert made['channels'].shape == (3, 3, 2)
  assert made['cards'] is made['card_shares'] is None


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
