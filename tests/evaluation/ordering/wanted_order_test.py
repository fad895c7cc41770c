"""Control edges for the priorities that a placement brings."""

import dataclasses

import numpy as np

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.ordering import control_edges
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from helpers import clusters
from helpers import graphs
from helpers import orders

_FREE = control_edges.OrderConfig(edge_s=0.)


def test_priorities_of_the_placement_are_obeyed():
  graph = graphs.make_graph([(0, 2), (1, 3)], 4)
  cluster = clusters.make_cluster()
  simulator = simulator_lib.Simulator(cluster,
                                      clusters.FixedCosts([3., 3., 1., 8.]))
  placement = placement_lib.Placement([1, 1, 2, 2], cluster)
  wanted = dataclasses.replace(placement, priorities=[1., 2., 0., 0.])
  against = dataclasses.replace(placement, priorities=[2., 1., 0., 0.])
  assert control_edges.control_edges(graph, wanted, simulator,
                                     _FREE).control_edges.tolist() == [[1, 0]]
  assert not len(
      control_edges.control_edges(graph, against, simulator,
                                  _FREE).control_edges)


def test_another_order_may_be_taken_where_edges_keep_more_of_it():
  graph, placement, costs = orders.late_chain(4)
  simulator = simulator_lib.Simulator(placement.cluster, costs)
  best = control_edges.control_edges(graph, placement, simulator, _FREE)
  # The sender last is what TensorFlow does by itself.
  late = dataclasses.replace(placement, priorities=-np.asarray(best.priorities))
  assert not len(
      control_edges.control_edges(graph, late, simulator, _FREE).control_edges)
  free = dataclasses.replace(_FREE, only_wanted=False)
  found = control_edges.control_edges(graph, late, simulator, free)
  assert found.with_edges_s == best.with_edges_s == 6.
  np.testing.assert_array_equal(found.priorities, best.priorities)
