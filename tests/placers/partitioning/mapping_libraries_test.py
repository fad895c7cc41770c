"""Tests that both Mt-KaHyPar and Scotch must pass."""

import numpy as np
import pytest

from gdp_grappler import deadlines
from gdp_grappler.cluster import presets
from gdp_grappler.placers.partitioning import min_cut
from gdp_grappler.placers.partitioning import mt_kahypar
from gdp_grappler.placers.partitioning import scotch
from helpers import graphs
from helpers import problems
from helpers import weighted_graphs

_PLACERS = mt_kahypar.MtKahyparPlacer, scotch.ScotchPlacer, min_cut.MinCutPlacer
pytestmark = pytest.mark.e2e


@pytest.fixture(name='partition', params=[mt_kahypar, scotch])
def _partition(request):
  library = request.param
  balanced = {'balanced': True} if library is scotch else {}
  worker = (scotch.mapper('scotch', 0).worker
            if library is scotch else mt_kahypar._WORKER)

  def partition(graph, num_parts, **given):
    job = weighted_graphs.job(graph, num_parts, **balanced, **given)
    return worker.run_each([job], deadlines.NEVER)[0]

  # Scotch may cut a path one time more than needed.
  return partition, int(library is scotch)


def test_two_cliques_are_cut_at_the_thin_edge(partition):
  parts = partition[0](weighted_graphs.two_cliques(), 2)
  assert weighted_graphs.sides(parts) == {(0,) * 5, (1,) * 5}


def test_target_weights_and_the_same_answer_again(partition):
  run, spare = partition
  graph, shares = weighted_graphs.path(90), np.array([2 / 3, 1 / 3])
  parts = run(graph, 2, shares=shares)
  assert 56 <= (parts == 0).sum() <= 63
  assert (np.diff(parts) != 0).sum() <= 1 + spare
  assert run(graph, 2, shares=shares).tolist() == parts.tolist()


def test_fixed_vertices_stay(partition):
  fixed = np.full(10, -1)
  fixed[[0, 5, 6]] = 1, 0, 0
  parts = partition[0](weighted_graphs.two_cliques(), 2, fixed=fixed)
  assert parts.tolist() == [1] * 5 + [0] * 5


def test_parts_that_talk_are_mapped_close_to_each_other(partition):
  run, spare = partition
  # A path is cut into four parts. Devices 0 and 2 are close, and also 1 and 3.
  distances = np.array([[0, 9, 1, 9], [9, 0, 9, 1], [1, 9, 0, 9], [9, 1, 9,
                                                                   0.]])
  parts = run(weighted_graphs.path(40), 4, distances=distances)
  crossed = [(a, b) for a, b in zip(parts[:-1], parts[1:]) if a != b]
  far = [pair for pair in crossed if distances[pair] == 9]
  assert 3 <= len(crossed) <= 3 + spare and len(far) == 1


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
