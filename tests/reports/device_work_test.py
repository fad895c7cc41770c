"""Tests of gdp_grappler.reports.device_work, on a step computed by hand."""

import numpy as np

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.reports import device_work
from helpers import clusters
from helpers import graphs


def test_ops_of_a_device_add_up():
  cluster, graph = clusters.make_cluster(2), graphs.chain(3)
  simulator = simulator_lib.Simulator(cluster, clusters.FixedCosts(1.))
  placement = placement_lib.Placement(np.array([1, 1, 2]), cluster)
  work = device_work.of_schedule(placement,
                                 simulator.schedule(graph, placement))
  assert work.ops.tolist() == [0, 2, 1]
  assert work.op_s.tolist() == [0, 2, 1]
  assert work.copy_s.tolist() == [0, 0, 0]


def test_memories_of_two_hosts_have_names_of_their_own():
  """Both were once "memory of GPU:0", which viewers draw as one curve."""
  cluster = presets.preset('2x1xP100-eth10')
  names = device_work.pool_names(cluster)
  assert len(set(names)) == len(names) == len(cluster.pool_bytes)
  assert 'worker/1/GPU:0' in names
