"""Which anchors the default placer asks; see `anchored_test`."""

import dataclasses

import numpy as np
import pytest

from gdp_grappler.placers import anchored
from gdp_grappler.placers import multilevel
from gdp_grappler.placers import stopwatch
from gdp_grappler.placers.policy import asking
from helpers import clusters
from helpers import graphs
from helpers import problems
from helpers import watched_anchors


@pytest.fixture(autouse=True)
def _without_moves(monkeypatch):
  """What is asked of others, where the policy of moves has nothing to say."""
  monkeypatch.setattr(asking, 'asked', lambda *_: None)


@pytest.fixture(autouse=True)
def _little_to_price(monkeypatch):
  monkeypatch.setattr(anchored, '_OPS_PER_S', 100_000)


def _problem(seconds, **fields):
  """Twelve ops that know nothing of each other."""
  return problems.make(graphs.make_graph(num_ops=12), clusters.make_cluster(2),
                       np.full((12, 3), seconds), repeatable=True, **fields)


@pytest.mark.parametrize(
    'seconds, budget_s, installed, asked',
    [
        (1., 40., True, True),
        (1., 40., False, False),
        (1., 9., True, False),  # It would take a twentieth of that.
        (1e-5, 40., True, False),
    ])
def test_slow_anchors_are_asked_where_they_are_little_beside_the_search(
    monkeypatch, seconds, budget_s, installed, asked):
  clock = watched_anchors.Clock()
  monkeypatch.setattr(anchored.extras, 'of_placers', lambda: ('mtkahypar',)
                      if installed else ())
  names = watched_anchors.watch(monkeypatch, clock, 0)
  placer = anchored.AnchoredPlacer(anchors=('single_device', 'mt_kahypar'),
                                   asks_policy=False, clock=clock)
  placer.place(_problem(seconds, time_budget_s=budget_s))
  assert [name for name, _ in names
         ] == ['single_device', *['mt_kahypar'] * asked]


def test_slow_anchors_of_many_groups_need_more_time(monkeypatch):
  """On eight devices it took a fifth of a minute, and found nothing."""
  deadline = stopwatch.Deadline(60.)
  few, many = (problems.make(graphs.chain(count)) for count in (100, 9000))
  assert anchored._has_time(few, 60., deadline)
  assert not anchored._has_time(many, 60., deadline)
  assert anchored._has_time(many, 300., stopwatch.Deadline(300.))


def test_slow_anchors_are_not_asked_when_most_of_the_time_is_over(monkeypatch):
  monkeypatch.setattr(anchored.extras, 'of_placers', lambda: ('mtkahypar',))
  clock = watched_anchors.Clock()
  names = watched_anchors.watch(monkeypatch, clock, 31)
  placer = anchored.AnchoredPlacer(anchors=('single_device', 'mt_kahypar'),
                                   asks_policy=False, clock=clock)
  placer.place(_problem(1., time_budget_s=40.))
  assert [name for name, _ in names] == ['single_device']


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
  anchored.AnchoredPlacer(anchors=('metis', 'structured', 'm_etf'),
                          asks_policy=False,
                          clock=watched_anchors.Clock()).place(problem)
  assert [name for name, _ in asked] == expected
