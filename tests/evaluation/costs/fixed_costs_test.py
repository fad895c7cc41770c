import numpy as np

from gdp_grappler.evaluation.costs import cost_model
from gdp_grappler.evaluation.costs import fixed_costs
from helpers import clusters
from helpers import graphs


def test_costs_what_it_is_told():
  graph, cluster = graphs.chain(2), clusters.make_cluster(1)
  seconds = np.array([[1., 2.], [3., 4.]])
  model = fixed_costs.FixedCostModel(seconds)
  assert model.op_seconds(graph, cluster) is seconds
  assert model.workspace_bytes(graph, cluster).tolist() == [[0, 0], [0, 0]]
  assert not model.contention(cluster).shares.any()
  contended = cost_model.Contention(np.zeros(2, int), np.array([.1, .2]))
  assert fixed_costs.FixedCostModel(seconds,
                                    contended).contention(cluster) is contended
