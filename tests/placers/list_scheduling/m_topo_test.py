from gdp_grappler.placers.list_scheduling import m_topo
from gdp_grappler.placers.list_scheduling import proposals
from helpers import clusters
from helpers import graphs
from helpers import problems


def test_equal_shares_of_memory_in_topological_order():
  graph = graphs.chain(12, 0, param_bytes=10)
  problem = problems.make(graph, clusters.make_cluster(3), [[9, 1, 1, 1]] * 12)
  shared = proposals.Proposals(problem)
  propose = m_topo._proposer(shared, proposals.Bundles(), False,
                             shared.group_bytes)
  assert propose(problem.cluster.pool_bytes).tolist() == ([1] * 4 + [2] * 4
                                                          + [3] * 4)
