import dataclasses
import importlib.util

import numpy as np
import pytest

from fuzz import runs
from gdp_grappler import deadlines
from gdp_grappler import errors
from gdp_grappler.cluster import presets
from gdp_grappler.placers.partitioning import min_cut
from gdp_grappler.placers.partitioning import scotch
from helpers import clusters
from helpers import graphs
from helpers import problems
from helpers import weighted_graphs

pytestmark = pytest.mark.e2e
_PLACERS = scotch.ScotchPlacer, min_cut.MinCutPlacer


def _partition(graph, num_parts, **given):
  job = weighted_graphs.job(graph, num_parts, balanced=True, **given)
  return scotch._run([job], deadlines.NEVER)[0]


def test_two_cliques_are_cut_at_the_thin_edge():
  parts = _partition(weighted_graphs.two_cliques(), 2)
  assert weighted_graphs.sides(parts) == {(0,) * 5, (1,) * 5}


def test_target_weights_and_the_same_answer_again():
  graph, shares = weighted_graphs.path(90), np.array([2 / 3, 1 / 3])
  parts = _partition(graph, 2, shares=shares)
  assert 57 <= (parts == 0).sum() <= 63
  assert (np.diff(parts) != 0).sum() <= 2
  again = _partition(graph, 2, shares=shares)
  assert again.tolist() == parts.tolist()


def test_fixed_vertices_stay():
  fixed = np.full(10, -1)
  fixed[[0, 5, 6]] = 1, 0, 0
  graph = weighted_graphs.two_cliques()
  parts = _partition(graph, 2, fixed=fixed)
  assert parts.tolist() == [1] * 5 + [0] * 5
  everything = np.arange(10) % 2
  assert _partition(graph, 2,
                    fixed=everything).tolist() == (everything.tolist())


def test_parts_that_talk_are_mapped_close_to_each_other():
  # A path of four equal pieces onto 0 and 2, 1 and 3 that are close.
  distances = np.array([[0, 9, 1, 9], [9, 0, 9, 1], [1, 9, 0, 9], [9, 1, 9,
                                                                   0.]])
  parts = _partition(weighted_graphs.path(40), 4, distances=distances)
  crossed = [(a, b) for a, b in zip(parts[:-1], parts[1:]) if a != b]
  far = [pair for pair in crossed if distances[pair] == 9]
  assert len(crossed) <= 4 and len(far) == 1


def test_a_graph_on_which_scotch_dies_is_placed():
  # Its own memory is damaged by one of 32 mappings, the last.
  assert not runs.examine(3000, ('min_cut',)).broken


@pytest.mark.parametrize('placer', _PLACERS)
def test_pins_and_a_second_run(placer):
  graph = graphs.random_graph(0, 80)
  pins = np.full(graph.num_groups, '', object)
  pins[:3] = 'GPU:1', 'CPU:0', 'GPU:3'
  graph = graph.replace(pins=pins[graph.groups].tolist())
  cluster = presets.preset('2xP100+2xK40')
  devices = problems.placed(placer(), graph, cluster, seed=7)
  for group, device in enumerate((2, 0, 4)):
    assert set(devices[graph.groups == group]) == {device}
  assert problems.placed(placer(), graph, cluster,
                         seed=7).tolist() == devices.tolist()


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


@pytest.mark.parametrize('placer', _PLACERS)
@pytest.mark.parametrize('graph', [
    graphs.make_graph(),
    graphs.make_graph(num_ops=1),
    graphs.make_graph(num_ops=9),
    graphs.fan_out(3),
    graphs.chain(10, groups=[0] * 10)
])
def test_small_graphs(placer, graph):
  cluster = presets.preset('4xP100')
  assert len(problems.placed(placer(), graph, cluster)) == graph.num_ops
  assert len(problems.placed(placer(), graph,
                             clusters.make_cluster(0))) == graph.num_ops


def test_nothing_is_printed(capfd):
  _partition(weighted_graphs.path(3), 8)
  assert capfd.readouterr() == ('', '')


@pytest.mark.parametrize('placer', _PLACERS)
def test_without_scotchpy(monkeypatch, placer):
  monkeypatch.setattr(importlib.util, 'find_spec', lambda name: None)
  with pytest.raises(errors.GdpError, match='needs the package scotchpy64'):
    problems.placed(placer(), graphs.chain(3), clusters.make_cluster(2))


def test_empty_tensors_over_links_of_which_some_take_no_time():
  """The lengths of such an architecture once overflowed."""
  cluster = clusters.make_cluster(3, latency_s=0.)
  links = [
      dataclasses.replace(link, latency_s=1.) if '1' in link.source else link
      for link in cluster.links
  ]
  cluster = dataclasses.replace(cluster, links=links)
  graph = graphs.chain(30, 0)
  placement = scotch.ScotchPlacer().place(problems.make(graph, cluster, 1.))
  assert placement.violations(graph) == ()
