import dataclasses
import importlib.util

import numpy as np
import pytest

from fuzz import runs
from gdp_grappler import deadlines
from gdp_grappler import errors
from gdp_grappler.cluster import presets
from gdp_grappler.placers import registry
from gdp_grappler.placers.partitioning import min_cut
from gdp_grappler.placers.partitioning import partition_process
from gdp_grappler.placers.partitioning import scotch
from gdp_grappler.processes import calls
from helpers import clusters
from helpers import graphs
from helpers import problems
from helpers import weighted_graphs

pytestmark = pytest.mark.e2e
_PLACERS = scotch.ScotchPlacer, min_cut.MinCutPlacer


def _partition(graph, num_parts, **given):
  job = weighted_graphs.job(graph, num_parts, balanced=True, **given)
  return scotch.mapper('scotch', 0).worker.run_each([job], deadlines.NEVER)[0]


def test_if_all_vertices_are_fixed_they_stay():
  fixed = np.arange(10) % 2
  parts = _partition(weighted_graphs.two_cliques(), 2, fixed=fixed)
  assert parts.tolist() == fixed.tolist()


def test_a_graph_on_which_scotch_dies_is_placed():
  # In the last of 32 mappings, Scotch damages its memory.
  assert not runs.examine(3000, ('min_cut',)).broken


def test_min_cut_uses_all_gpus_and_no_cpu():
  chains = graphs.make_graph([(i, i + 1) for i in range(39) if i % 10 != 9], 40,
                             flops=1e9)
  devices = problems.placed(min_cut.MinCutPlacer(), chains,
                            presets.preset('4xP100'))
  assert set(devices) == {1, 2, 3, 4}
  assert (np.diff(devices) != 0).sum() == 3


def test_min_cut_leaves_a_chain_on_one_gpu():
  devices = problems.placed(min_cut.MinCutPlacer(), graphs.chain(40, flops=1e9),
                            presets.preset('4xP100'))
  assert len(set(devices)) == 1


def test_scotch_leaves_devices_out_where_that_is_faster():
  cluster = clusters.make_cluster(4, latency_s=1e6)
  assert len(
      set(
          problems.placed(scotch.ScotchPlacer(), graphs.chain(20, flops=1e9),
                          cluster))) == 1


def test_nothing_is_printed(capfd):
  _partition(weighted_graphs.path(3), 8)
  assert capfd.readouterr() == ('', '')


@pytest.mark.parametrize('placer', _PLACERS)
def test_without_scotchpy(monkeypatch, placer):
  monkeypatch.setattr(importlib.util, 'find_spec', lambda name: None)
  with pytest.raises(errors.GdpError, match='needs the package scotchpy64'):
    problems.placed(placer(), graphs.chain(3), clusters.make_cluster(2))


@pytest.mark.parametrize('name', ['scotch', 'min_cut'])
def test_an_error_names_the_placer_of_the_user(monkeypatch, name):
  """If min_cut failed, the error once named scotch."""

  def fail(function, *_, **__):
    assert function.endswith('.scotch_worker:run')
    raise calls.CallError('it died')

  monkeypatch.setattr(partition_process.calls, 'call', fail)
  with pytest.raises(errors.GdpError, match=f'placer "{name}" failed: it died'):
    problems.placed(registry.create(name), graphs.chain(3))


def test_empty_tensors_over_links_of_which_some_take_no_time():
  """The integer distances between the devices once overflowed."""
  cluster = clusters.make_cluster(3, latency_s=0.)
  links = [
      dataclasses.replace(link, latency_s=1.) if '1' in link.source else link
      for link in cluster.links
  ]
  cluster = dataclasses.replace(cluster, links=links)
  graph = graphs.chain(30, 0)
  placement = scotch.ScotchPlacer().place(problems.make(graph, cluster, 1.))
  assert placement.violations(graph) == ()
