"""Tests of steps and of the problems made from them."""

import numpy as np

from gdp_grappler.placers import step as step_lib
from helpers import clusters
from helpers import graph_defs
from helpers import graphs


def test_the_simulator_has_the_costs_of_the_step():
  graph, cluster = graphs.chain(4), clusters.make_cluster(1)
  step = step_lib.Step(graph, cluster, cost_model=clusters.FixedCosts(2.))
  problem = step.problem(seed=5)
  assert (problem.seed, problem.expert_devices) == (5, None)
  prices = step.simulator().price(graph, np.zeros((1, 4), int))
  assert prices.seconds.tolist() == [8.]
  assert problem.op_seconds.tolist() == [[2., 2.]] * 4


def test_the_expert_is_asked_with_the_seconds_of_the_evaluator():
  asked = []

  def expert(graph, cluster, seconds):
    asked.append(seconds)
    return np.full(graph.num_ops, cluster.num_devices - 1)

  graph, cluster = graphs.chain(3), clusters.make_cluster(2)
  step = step_lib.Step(graph, cluster, cost_model=clusters.FixedCosts(1.),
                       expert=expert)
  assert step.problem().expert_devices.tolist() == [2, 2, 2]
  np.testing.assert_array_equal(asked, np.ones((1, 3, 3)))


def test_a_graph_in_memory():
  source = graph_defs.source(
      graph_defs.graph_def(
          graph_defs.node('a', 'NoOp', device=graph_defs.CPU(0)),
          graph_defs.node('b', 'NoOp', ['^a'], device=graph_defs.CPU(0))))
  cluster = clusters.make_cluster(1)
  step = step_lib.of_source(source, cluster)
  assert step.graph.names == ('a', 'b') and step.source is source
  assert step.cost_model is None and step.cluster is cluster
