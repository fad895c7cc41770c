"""Which moves are believed, and what becomes of the anchor."""

import dataclasses

import numpy as np
import pytest

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.features.moves import schema
from gdp_grappler.placers import best_of
from gdp_grappler.placers import greedy
from gdp_grappler.placers import move_filter
from gdp_grappler.placers import move_network
from gdp_grappler.placers import shipped_moves
from helpers import clusters
from helpers import graphs
from helpers import problems


class _Anchor:
  """Everything on the first GPU."""

  def __init__(self, names):
    assert names[0] == 'single_device'

  def place(self, problem):
    return placement_lib.Placement(np.ones(problem.graph.num_ops, np.int32),
                                   problem.cluster)


def _network(bias, feature='groups', weight=0.):
  """Its logit is a bias and a multiple of one feature, if that is positive."""
  names = schema.names(move_filter.KINDS)
  hidden = np.zeros((len(names), 1))
  hidden[names.index(feature)] = 1
  return move_network.MoveNetwork(names, np.zeros(len(names)),
                                  np.ones(len(names)), hidden, [0.],
                                  [[weight, 0.]], [bias, 0.])


def _problem():
  return problems.make(
      graphs.make_graph(num_ops=12, param_bytes=np.full(12, 100)),
      clusters.make_cluster(2), np.full((12, 3), 1.))


@pytest.fixture(autouse=True)
def _one_gpu(monkeypatch):
  monkeypatch.setattr(best_of, 'BestOfPlacer', _Anchor)


def _placed(monkeypatch, network, problem, **config):
  monkeypatch.setattr(shipped_moves, 'network', lambda: network)
  return greedy.GreedyPlacer(
      greedy.GreedyConfig(**config)).place(problem).devices


def test_a_network_that_believes_in_nothing_leaves_the_anchor(monkeypatch):
  devices = _placed(monkeypatch, _network(-1.), _problem())
  assert devices.tolist() == [1] * 12


def test_a_network_that_believes_in_all_moves_groups_once(monkeypatch):
  devices = _placed(monkeypatch, _network(5.), _problem(), most_moves=1)
  assert (devices != 1).any()
  more = _placed(monkeypatch, _network(5.), _problem(), most_moves=100)
  assert (more != 1).sum() >= (devices != 1).sum()


def test_the_likeliest_moves_come_first(monkeypatch):
  devices = _placed(monkeypatch, _network(5., 'groups', -1.), _problem(),
                    most_moves=2)
  assert (devices != 1).sum() == 2


def test_what_would_not_fit_is_not_done(monkeypatch):
  problem = _problem()
  host, first, second = problem.cluster.devices
  small = dataclasses.replace(
      problem.cluster, devices=(dataclasses.replace(host,
                                                    memory_bytes=50), first,
                                dataclasses.replace(second, memory_bytes=50)))
  problem = problems.make(problem.graph, small, np.full((12, 3), 1.))
  devices = _placed(monkeypatch, _network(5.), problem, most_moves=100)
  assert devices.tolist() == [1] * 12


def test_repeatable(monkeypatch):
  first, again = (
      _placed(monkeypatch, _network(5.), _problem()) for _ in range(2))
  assert first.tolist() == again.tolist()


@pytest.mark.parametrize('fields',
                         [{'draws': 0}, {'most_moves': 0},
                          {'least_probability': 0.}, {'least_probability': 1.}])
def test_bad_configs(fields):
  with pytest.raises(ValueError, match=next(iter(fields))):
    greedy.GreedyConfig(**fields)
