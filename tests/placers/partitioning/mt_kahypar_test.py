import functools
import importlib.util

import numpy as np
import pytest

from gdp_grappler import deadlines
from gdp_grappler import errors
from gdp_grappler.cluster import presets
from gdp_grappler.placers.partitioning import mt_kahypar
from gdp_grappler.placers.partitioning import partition_process
from helpers import clusters
from helpers import graphs
from helpers import problems
from helpers import weighted_graphs

pytestmark = pytest.mark.e2e

_place = functools.partial(problems.placed, mt_kahypar.MtKahyparPlacer())


def _partition(graph, num_parts, **given):
  job = weighted_graphs.job(graph, num_parts, **given)
  return mt_kahypar._WORKER.run_each([job], deadlines.NEVER)[0]


def test_any_seed_will_do():
  parts = _partition(weighted_graphs.two_cliques(), 2, seed=1 << 40)
  assert weighted_graphs.sides(parts) == {(0,) * 5, (1,) * 5}


def test_a_heavy_vertex_has_room(capfd):
  graph = weighted_graphs.make([1000] + [1] * 20,
                               [(0, i, 1.) for i in range(1, 21)])
  distances = 1. + np.arange(9).reshape(3, 3) % 2
  parts = _partition(graph, 3, distances=distances + distances.T)
  assert parts.shape == (21,) and capfd.readouterr() == ('', '')


def test_one_job_that_ends_the_process_leaves_the_others(monkeypatch):

  def run(worker, jobs, timeout_s):
    del worker, timeout_s
    if any(job['seed'] == 1 for job in jobs):
      raise errors.GdpError('SIGSEGV')
    return [np.zeros(job['graph'].num_vertices, int) for job in jobs]

  monkeypatch.setattr(partition_process.Worker, 'run', run)
  graph = weighted_graphs.path(4)
  assert _partition(graph, 2).tolist() == [0] * 4
  with pytest.raises(errors.GdpError, match='SIGSEGV'):
    _partition(graph, 2, seed=1)


@pytest.mark.parametrize('budget_s', [.001, .005])
def test_a_short_time_is_for_few_mappings(monkeypatch, budget_s):
  """Mappings once took nine of ten seconds, and no search followed."""
  asked = []

  def run_each(worker, jobs, deadline):
    del worker, deadline
    asked.append(len(jobs))
    return [np.zeros(job['graph'].num_vertices, int) for job in jobs]

  monkeypatch.setattr(partition_process.Worker, 'run_each', run_each)
  graph, cluster = graphs.random_graph(0, 60), presets.preset('8xP100')
  _place(graph, cluster)
  assert asked[0] > 2
  asked.clear()
  _place(graph, cluster, time_budget_s=budget_s)
  assert asked[0] <= 2


def test_without_mtkahypar(monkeypatch):
  monkeypatch.setattr(importlib.util, 'find_spec', lambda name: None)
  with pytest.raises(errors.GdpError, match='needs the package mtkahypar'):
    _place(graphs.chain(3), clusters.make_cluster(2))
