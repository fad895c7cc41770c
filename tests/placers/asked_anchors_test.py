"""Which anchors the default placer asks; see `default_placer_test`."""

import dataclasses

import numpy as np
import pytest

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import default_placer
from gdp_grappler.placers.policy import move_policy
from gdp_grappler.placers.search import multilevel
from gdp_grappler.placers.search import staged_search
from helpers import clusters
from helpers import graphs
from helpers import problems
from helpers import watched_anchors


@pytest.fixture(autouse=True)
def _only_anchors(monkeypatch):
  """The policy of moves proposes nothing, and no search follows."""
  monkeypatch.setattr(move_policy, 'before_search', lambda *_: None)
  monkeypatch.setattr(
      staged_search, 'search', lambda problem, starts, *_, **__:
      (placement_lib.from_groups(problem.graph, starts[0], problem.cluster),))


@pytest.mark.parametrize('memory_bytes, expected',
                         [(1 << 40, ['structured']),
                          (1000, ['structured', 'metis', 'm_etf'])])
def test_where_a_graph_repeats_itself_others_are_asked_if_it_overflows(
    monkeypatch, memory_bytes, expected):
  """All of it fitted on the host, in a hundred times of the seconds."""
  asked = watched_anchors.watch(monkeypatch, watched_anchors.Clock(), 0)
  monkeypatch.setattr(multilevel, 'coarsened', lambda *arguments: object())
  monkeypatch.setattr(multilevel, 'is_worth', lambda seconds: False)
  cluster = clusters.make_cluster(2, memory_bytes=memory_bytes)
  host, *others = cluster.devices
  cluster = dataclasses.replace(
      cluster, devices=(dataclasses.replace(host,
                                            memory_bytes=1 << 40), *others))
  problem = problems.make(graphs.make_graph(num_ops=12, param_bytes=400),
                          cluster, np.array([[100., 1., 1.]] * 12))
  default_placer.DefaultPlacer(anchors=('metis', 'structured', 'm_etf'),
                               asks_policy=False,
                               clock=watched_anchors.Clock()).place(problem)
  assert [name for name, _ in asked] == expected
