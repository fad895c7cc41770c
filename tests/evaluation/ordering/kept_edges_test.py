"""Control edges that a placement keeps, so that nobody searches again."""

import dataclasses

import numpy as np

from gdp_grappler.evaluation.ordering import control_edges
from gdp_grappler.evaluation.ordering import edge_pricer
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from helpers import clusters
from helpers import orders

_FREE = control_edges.OrderConfig(edge_s=0.)


def _kept_case():
  graph, placement, costs = orders.late_chain(4)
  simulator = simulator_lib.Simulator(placement.cluster, costs)
  order = control_edges.control_edges(graph, placement, simulator, _FREE)
  return graph, control_edges.attach(placement, order), simulator, order


def test_edges_that_a_placement_keeps_are_not_searched_again(monkeypatch):
  graph, placement, simulator, order = _kept_case()
  assert placement.priorities.tolist() == order.priorities.tolist()
  monkeypatch.setattr(edge_pricer, 'EdgePricer', None)
  for config in (_FREE, dataclasses.replace(_FREE, min_gain=.1, max_s=1.)):
    found = control_edges.control_edges(graph, placement, simulator, config)
    assert found is order
  # The edges save two fifths of the step.
  config = dataclasses.replace(_FREE, min_gain=.5)
  found = control_edges.control_edges(graph, placement, simulator, config)
  assert not len(found.control_edges)
  assert found.priorities is None and found.with_edges_s == found.fifo_s


def test_edges_of_another_placement_or_step_are_searched():
  graph, placement, simulator, order = _kept_case()
  for changes in ({'priorities': None}, {'priorities': -placement.priorities},
                  {'devices': np.ones(graph.num_ops)}):
    other = dataclasses.replace(placement, **changes)
    assert other.known_order is None
    found = control_edges.control_edges(graph, other, simulator, _FREE)
    assert found is not order
  slower = simulator_lib.Simulator(placement.cluster,
                                   clusters.FixedCosts([2.] * graph.num_ops))
  assert control_edges.control_edges(graph, placement, slower,
                                     _FREE) is not order


def test_a_more_thorough_search_is_made_where_the_first_one_had_to_stop():
  graph, placement, simulator, order = _kept_case()
  assert order.complete
  cut = dataclasses.replace(order, complete=False)
  more = dataclasses.replace(_FREE,
                             max_simulated_ops=2 * _FREE.max_simulated_ops)
  assert order.answers(more) and not cut.answers(more) and cut.answers(_FREE)
  assert not order.answers(dataclasses.replace(_FREE, edge_s=1.))
  nothing = order.limited(.9)
  assert nothing.answers(_FREE)
  assert not nothing.answers(dataclasses.replace(_FREE, min_gain=0.))
  found = control_edges.control_edges(
      graph, placement, simulator,
      dataclasses.replace(_FREE, max_simulated_ops=1))
  assert found is order


def test_steps_run_with_the_edges_that_are_predicted(monkeypatch):
  """A step that ran once had the edges of a second search."""
  graph, placement, costs = orders.late_chain(4)
  simulator = simulator_lib.Simulator(placement.cluster, costs)

  class Runs(simulator_lib.Simulator):
    simulated = False

    def evaluate(self, graph, placement):
      monkeypatch.setattr(edge_pricer, 'EdgePricer', None)  # No search.
      assert len(control_edges.chooser(simulator)(graph, placement))
      return super().evaluate(graph, placement)

  control_edges.evaluate(graph, placement, Runs(placement.cluster, costs),
                         simulator)
