"""Tests of moving groups and of what is cut."""

import numpy as np

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import what_if
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from helpers import clusters
from helpers import graphs


def _moves(graph, devices, groups):
  cluster = clusters.make_cluster(2)
  placement = placement_lib.Placement(np.array(devices), cluster)
  return what_if.moves(
      graph, placement, np.array(groups),
      simulator_lib.Simulator(cluster, clusters.FixedCosts(1.)))


def test_a_group_moves_as_a_whole():
  graph = graphs.chain(3, groups=[0, 1, 0])
  found = _moves(graph, [1, 1, 1], [0])
  assert [(m.device, m.groups, m.cut_tensors) for m in found] == [(0, 1, 2),
                                                                  (2, 1, 2)]


def test_only_what_may_move_does():
  graph = graphs.chain(2, pins=['GPU:0', ''], user_pins=[True, False])
  cpu, other = _moves(graph, [1, 1], [0, 1])
  assert (cpu.device, cpu.groups) == (0, 1)
  assert (other.device, other.groups) == (2, 1)
  assert not _moves(graph, [1, 1], [0])


def test_a_tensor_is_cut_once_per_receiver():
  graph = graphs.fan_out(3, tensor_bytes=50)
  cluster = clusters.make_cluster(2)
  placement = placement_lib.Placement(np.array([1, 2, 2, 0]), cluster)
  cuts = what_if.cuts(graph, placement)
  assert [(c.source, c.target, c.size_bytes, c.seconds) for c in cuts
         ] == [(1, 0, 50, 1.5), (1, 2, 50, 1.5)]
  assert len(what_if.cuts(graph, placement, np.array([3]))) == 1
  assert placement.cut(graph) == (len(cuts), 100)
