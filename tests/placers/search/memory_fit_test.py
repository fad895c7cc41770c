import numpy as np

from gdp_grappler import deadlines
from gdp_grappler.placers.search import memory_fit
from gdp_grappler.placers.search import priced_placements
from helpers import clusters
from helpers import graphs
from helpers import problems


def _seen(problem):
  return priced_placements.PricedPlacements(problem.graph, problem.evaluator)


def test_best_fitting_is_no_worse_than_one_device_and_fits():
  graph = graphs.make_graph(num_ops=2, param_bytes=80)
  cluster = clusters.make_cluster(2, memory_bytes=100)
  problem = problems.make(graph, cluster, [[9, 1, 2], [9, 1, 2]])
  seen = _seen(problem)
  # Only the host has room for both ops, and takes 18 s.
  seen.add([np.array([1, 1])])
  placement = memory_fit.best_fitting(problem, seen, deadlines.NEVER)
  assert sorted(placement.devices.tolist()) == [1, 2]
  assert problem.evaluator.evaluate(problem.graph, placement).valid


def test_best_fitting_where_memory_is_no_matter():
  problem = problems.make(graphs.make_graph(num_ops=2), seconds=[[9, 1, 2],
                                                                 [9, 1, 2]])
  seen = _seen(problem)
  seen.add([np.array([0, 0])])
  assert memory_fit.best_fitting(problem, seen,
                                 deadlines.NEVER).devices.tolist() == [1, 1]
