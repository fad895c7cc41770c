import numpy as np
import pytest

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.ordering import control_edges
from gdp_grappler.evaluation.ordering import critical_path_order
from gdp_grappler.evaluation.ordering import edge_pricer
from gdp_grappler.evaluation.simulation import simulator
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
  """A problem in which an order of op 1 before op 0 may pay.

  If ops 0 and 1 share a device, op 2 on another device waits for op 1.
  """
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


@pytest.fixture(name='problem')
def fixture_problem():
  cluster = presets.preset('2xP100')
  return problems.make(graphs.random_graph(2, 40), cluster,
                       simulator=simulator.Simulator(cluster))


def _placements(problem, count):
  rng = np.random.default_rng(0)
  rows = [[rng.choice(np.flatnonzero(ok)) for ok in problem.allowed]
          for _ in range(count)]
  return [
      placement_lib.from_groups(problem.graph, np.array(row), problem.cluster)
      for row in rows
  ]


def test_what_never_runs_is_the_last(problem):
  good, = _placements(problem, 1)
  bad = placement_lib.Placement(
      np.arange(problem.graph.num_ops) % 3, problem.cluster)
  assert bad.violations(problem.graph)
  assert (edge_selection.with_edges(problem, good)[0]
          < edge_selection.with_edges(problem, bad)[0])


def test_keys_have_steps_with_the_edges_that_pay(problem):
  for placement in _placements(problem, 6):
    order = control_edges.control_edges(
        problem.graph, placement, problem.simulator,
        control_edges.OrderConfig(max_simulated_ops=500_000, only_wanted=False))
    key, ordered = edge_selection.with_edges(problem, placement)
    assert key[-1] == pytest.approx(order.with_edges_s)
    assert (ordered.devices == placement.devices).all()
    # The placement has the order that its edges enforce.
    again = control_edges.control_edges(
        problem.graph,
        placement_lib.Placement(ordered.devices, problem.cluster,
                                ordered.priorities), problem.simulator)
    assert again.with_edges_s <= key[-1] * (1 + 1e-9)
    assert (ordered.priorities is None) != bool(len(order.control_edges))


def test_without_edges_priorities_stay(problem):
  for placement in _placements(problem, 6):
    critical = critical_path_order.with_critical_path_order(
        problem.graph, placement, problem.simulator)
    _, ordered = edge_selection.with_edges(problem, critical)
    assert ordered.priorities is not None


def test_a_placement_keeps_its_edges(problem, monkeypatch):
  """Callers of the search once searched for the same edges again."""
  ordered = [
      edge_selection.with_edges(problem, placement)[1]
      for placement in _placements(problem, 6)
  ]
  monkeypatch.setattr(edge_pricer, 'EdgePricer', None)
  choice = edge_selection.best(problem, ordered, problem.simulator,
                               lambda _: control_edges.OrderConfig())
  assert choice.order is choice.placement.order
  assert choice.with_order.known_order is choice.order
