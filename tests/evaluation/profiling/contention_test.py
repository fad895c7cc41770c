"""Tests of contention between workers and of what keeps its results."""

import pathlib
import types

import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import local_devices
from gdp_grappler.evaluation.costs import profiled_costs
from gdp_grappler.evaluation.measuring import local_workers
from gdp_grappler.evaluation.measuring import runnable
from gdp_grappler.evaluation.profiling import contention
from gdp_grappler.evaluation.profiling import profiling_worker
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph.sources import sources
from gdp_grappler.processes import messages
from gdp_grappler.processes import worker_process
from helpers import graphs
from helpers import profiles

_TESTDATA = pathlib.Path(__file__).parents[2] / 'testdata'


def test_share_is_what_the_step_takes_longer_per_other_worker():
  assert contention.shares([1., 2.], [1.5, 2.]) == (.5, 0.)
  assert contention.shares([1., 1., 1.], [1.5, 2., 1.]) == (.25, .5, 0.)


def test_faster_beside_others_is_noise():
  assert contention.shares([1., 1.], [.9, 1.]) == (0., 0.)


def test_a_single_worker_starts_nothing(monkeypatch):
  monkeypatch.setattr(worker_process, 'WorkerProcess', None)
  assert contention.measure(['the only one'], 'graph') == (0.,)


def test_costs_know_who_shares_a_bus():
  graph = graphs.make_graph(num_ops=1)
  names = local_workers.device_names(2)
  profile = profiles.of_graph(graph, [1.],
                              devices=[(name, 'CPU') for name in names],
                              bus='2 local workers', contention=.25)
  cluster = local_workers.cluster(3)
  found = profiled_costs.ProfiledCostModel(profile).contention(cluster)
  # The third worker was not there when the others were profiled.
  assert found.buses[0] == found.buses[1] != found.buses[2]
  assert found.shares.tolist() == [.25, .25, 0.]


def test_one_device_of_a_type_lends_its_costs_but_not_its_bus():
  graph = graphs.make_graph(num_ops=1)
  profile = profiles.of_graph(graph, [1.], devices=[('somewhere', 'CPU')],
                              bus='a bus', contention=.25)
  cluster = local_devices.local_cluster(
      [f'/job:localhost/replica:0/task:0/device:CPU:{i}' for i in range(2)])
  found = profiled_costs.ProfiledCostModel(profile).contention(cluster)
  assert found.shares.tolist() == [0., 0.] and len(set(found.buses)) == 2


def test_a_step_that_fails_later_is_told(monkeypatch):
  """A failure in a timed window once ended with a TypeError."""

  class Worker:
    """Warms up, and fails afterwards."""

    def __init__(self, *unused_arguments, **unused_options):
      self._answers = iter([None, messages.Failure('no memory')])

    def send(self, message):
      pass

    def receive(self, timeout_s):
      del timeout_s
      return next(self._answers)

    def close(self):
      pass

  monkeypatch.setattr(worker_process, 'WorkerProcess', Worker)
  setups = [types.SimpleNamespace(device=name) for name in ('one', 'two')]
  with pytest.raises(errors.MeasurementError,
                     match='graph does not run on one: no memory'):
    contention.measure(setups, 'graph')


@pytest.mark.e2e
def test_a_graph_that_fails_is_told():
  setups = _failing_setups()
  with pytest.raises(errors.MeasurementError, match='does not run on'):
    contention.measure(setups, 'broken')


def _failing_setups():
  source = sources.load(str(_TESTDATA / 'dense_train_step.pb'))
  graph = graph_def_io.read(source)
  nowhere = '/job:localhost/replica:0/task:0/device:GPU:7'
  return [
      profiling_worker.Setup(runnable.convert(source, 32), graph.names,
                             (nowhere,) * graph.num_ops, nowhere, '',
                             (), 0, 0, 1)
  ] * 2
