"""One result after the other."""

import hypothesis
from hypothesis import strategies
import numpy as np

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.ordering import depth_first
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from helpers import clusters
from helpers import graphs


def test_an_order_one_can_follow():
  # Op 4 needs 1 and then 0; op 5 needs 2 and 0. Op 3 stands alone.
  graph = graphs.make_graph([(1, 4), (0, 4), (2, 5), (0, 5)], 6)
  assert np.argsort(-depth_first.priorities(graph)).tolist() == [
      3, 1, 0, 4, 2, 5
  ]


def test_parts_of_a_batch_follow_each_other_through_the_stages():
  # Part k: op k on GPU:0, then op 4 + k on GPU:1, then op 8 + k on GPU:0.
  graph = graphs.make_graph([(k, 4 + k) for k in range(4)]
                            + [(4 + k, 8 + k) for k in range(4)], 12)
  cluster = clusters.make_cluster(latency_s=0.)
  simulator = simulator_lib.Simulator(cluster, clusters.FixedCosts(1.))
  placement = placement_lib.Placement([1] * 4 + [2] * 4 + [1] * 4, cluster,
                                      depth_first.priorities(graph))
  start_s = simulator.schedule(graph, placement).start_s
  # Two parts come back before the others are begun.
  assert start_s.tolist() == [0, 1, 4, 5, 1, 2, 5, 6, 2, 3, 6, 7]


@hypothesis.settings(max_examples=50, deadline=None, derandomize=True)
@hypothesis.given(seed=strategies.integers(0, 10_000))
def test_what_an_op_needs_comes_before_it(seed):
  graph = graphs.random_graph(seed, 80)
  priorities = depth_first.priorities(graph)
  assert len(np.unique(priorities)) == graph.num_ops
  first, then = graph.edges.T
  assert (priorities[first] > priorities[then]).all()
