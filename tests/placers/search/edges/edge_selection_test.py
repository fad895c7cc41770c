import numpy as np
import pytest

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.ordering import control_edges
from gdp_grappler.placers.search.edges import edge_selection
from helpers import clusters
from helpers import graphs
from helpers import problems

_CLUSTER = clusters.make_cluster(2)


def _never(placement):
  del placement
  return None


def _always(placement):
  del placement
  return control_edges.OrderConfig(min_gain=0.)


def _placement(devices):
  return placement_lib.Placement(np.array(devices), _CLUSTER)


def test_the_cheapest_and_of_equals_the_first():
  problem = problems.make(graphs.make_graph(num_ops=2), _CLUSTER, 1.)
  same, apart = _placement([1, 1]), _placement([1, 2])
  for candidates, best in (((same, apart), apart), ((same, _placement([2, 2])),
                                                    same)):
    choice = edge_selection.best(problem, candidates, problem.evaluator, _never)
    assert choice.placement is best and choice.order is None


def test_what_fits_beats_what_is_faster():
  cluster = clusters.make_cluster(2, memory_bytes=1000)
  problem = problems.make(graphs.chain(2, param_bytes=600), cluster,
                          [[50, 1, 1]] * 2)
  together, apart = (
      placement_lib.Placement(np.array(d), cluster) for d in ([1, 1], [1, 2]))
  choice = edge_selection.best(problem, (together, apart), problem.evaluator,
                               _never)
  assert choice.placement is apart


def _late():
  """A device starts with what nobody waits for, unless an order says else."""
  # 0 and 1 are on one device, 2 on the other waits for 1 alone.
  graph = graphs.make_graph([(1, 2, 8)], num_ops=4)
  return problems.make(graph, _CLUSTER, [[9., 4., 4.]] * 4)


@pytest.mark.parametrize('orders, better', [(_never, 1), (_always, 0)])
def test_an_order_decides_between_placements(monkeypatch, orders, better):
  problem = _late()
  candidates = _placement([1, 1, 2, 1]), _placement([1, 2, 2, 1])
  fast = problem.evaluator.price(problem.graph,
                                 np.stack([c.devices for c in candidates]))
  assert fast.seconds[1] < fast.seconds[0]

  def ordered(graph, placement, simulator, config):
    del graph, simulator, config
    edges = [[1, 0]] if placement is candidates[0] else []
    return control_edges.Order(
        np.array(edges, np.int32).reshape(-1, 2), 12., 6., 6.)

  monkeypatch.setattr(control_edges, 'control_edges', ordered)
  choice = edge_selection.best(problem, candidates, problem.evaluator, orders)
  assert choice.placement is candidates[better]
  assert (choice.order is not None) == (better == 0)


def test_only_the_most_promising_are_ordered(monkeypatch):
  problem = problems.make(graphs.random_graph(0, 30), _CLUSTER)
  rng = np.random.default_rng(0)
  candidates = [
      placement_lib.from_groups(problem.graph,
                                rng.integers(1, 3, problem.graph.num_groups),
                                _CLUSTER) for _ in range(6)
  ]
  asked = []
  stock = control_edges.control_edges
  monkeypatch.setattr(
      control_edges, 'control_edges',
      lambda *arguments: asked.append(arguments[1]) or stock(*arguments))
  edge_selection.best(problem, candidates, problem.evaluator, _always)
  promised = [
      control_edges.promised_s(problem.graph, c, problem.evaluator)
      for c in candidates
  ]
  assert {id(c) for c in asked} == {
      id(candidates[k]) for k in np.argsort(promised, kind='stable')[:2]
  }


def test_what_has_priorities_is_asked_however_slow_it_is_without(monkeypatch):
  problem = _late()
  slow = placement_lib.Placement(np.array([1, 1, 1, 1]), _CLUSTER,
                                 np.arange(4.))
  candidates = [
      _placement(devices)
      for devices in ([1, 2, 2, 1], [1, 2, 2, 2], [2, 1, 1, 2], [2, 1, 1, 1],
                      [1, 1, 2, 2])
  ]
  asked = []

  def promised(graph, placement, simulator):
    del graph, simulator
    asked.append(placement)
    return 0.

  monkeypatch.setattr(control_edges, 'promised_s', promised)
  edge_selection.best(problem, (*candidates, slow), problem.evaluator, _always)
  assert any(placement is slow for placement in asked)
