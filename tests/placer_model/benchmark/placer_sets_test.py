"""Sets of placers, and those that make sense."""

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.placers import placer as placer_lib
from helpers import clusters
from helpers import graphs
from placer_model.benchmark import placer_sets


def test_sets_share_nothing_and_make_all():
  heuristics = placer_sets.parse('heuristics')
  assert {'cpu_only', 'gpu_only', 'single_device', 'random',
          'metis'} <= set(heuristics)
  assert placer_sets.parse('all') == heuristics + placer_sets.LEARNED
  assert not set(heuristics) & set(placer_sets.LEARNED)


def test_names_come_once_in_the_order_given():
  names = placer_sets.parse('metis, gdp ,metis,random')
  assert names == ('metis', 'gdp', 'random')


@pytest.mark.parametrize('text, said', [('metsi', 'Did you mean "metis"'),
                                        ('', 'names no placer')])
def test_unknown_names(text, said):
  with pytest.raises(errors.GdpError, match=said):
    placer_sets.parse(text)


def test_what_makes_no_sense_is_left_out_unless_named():
  cpu = clusters.make_cluster(0)
  names = ('cpu_only', 'gpu_only', 'human_expert')

  def applicable(cluster, expert, wanted=()):
    return placer_sets.applicable(names, cluster, expert, frozenset(wanted))

  assert applicable(cpu, False) == ('cpu_only',)
  assert applicable(clusters.make_cluster(1), True) == names
  assert applicable(cpu, False,
                    ['human_expert']) == ('cpu_only', 'human_expert')


@pytest.mark.parametrize('name, device', [('cpu_only', 0), ('gpu_only', 1)])
def test_only_one_device(name, device):
  graph = graphs.chain(3)
  cluster = clusters.make_cluster(2)
  problem = placer_lib.Problem(graph, cluster, simulator.Simulator(cluster))
  placement = placer_sets.create(name).place(problem)
  np.testing.assert_array_equal(placement.devices, [device] * 3)


def test_a_graph_that_may_not_be_there_is_infeasible():
  # `cpu_only` once put such a graph on a GPU, and won with it.
  cluster = clusters.make_cluster(2)
  problem = placer_lib.Problem(
      graphs.chain(3, allowed_types=[[False, True]] * 3), cluster,
      simulator.Simulator(cluster))
  with pytest.raises(errors.InfeasiblePlacementError, match='may be on a CPU'):
    placer_sets.create('cpu_only').place(problem)


def test_no_gpu_is_infeasible():
  cluster = clusters.make_cluster(0)
  problem = placer_lib.Problem(graphs.chain(2), cluster,
                               simulator.Simulator(cluster))
  with pytest.raises(errors.InfeasiblePlacementError, match='no GPU'):
    placer_sets.create('gpu_only').place(problem)
