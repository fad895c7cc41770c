import dataclasses

import numpy as np
import pytest

from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.placers import limits
from gdp_grappler.placers import local_search
from gdp_grappler.placers import prioritized
from gdp_grappler.placers import races
from helpers import graphs
from helpers import problems


@dataclasses.dataclass(eq=False)
class _Runner:
  """Gets as far as it was told."""

  reaches: float
  best_key: tuple = (False, False, 0, np.inf)


@pytest.mark.parametrize('reaches, order', [
    ([3., 1., 2.], [1, 2, 0]),
    ([1., 1., .5], [2, 0, 1]),
    ([7.], [0]),
])
def test_the_best_comes_first_and_the_earlier_of_equals(reaches, order):
  runners = [_Runner(seconds) for seconds in reaches]
  starts, before, parts = iter(runners), [], []

  def run(racers, part):
    racers[0].best_key = (False, False, 0, racers[0].reaches)
    before.append([runners.index(racer) for racer in racers])
    parts.append(part)

  found = races.raced(lambda: next(starts), races.Phase(.25, .5, 0., .5),
                      len(runners), run)
  assert found == [runners[k] for k in order]
  assert [len(ran) for ran in before] == list(range(1, len(runners) + 1))
  assert [(part.begin, part.end) for part in parts] == [(0., .5)] * len(parts)


@pytest.mark.parametrize('count', [1, 2, 5])
def test_parts_follow_each_other(count):
  parts = races.Phase(.25, .5, .1, .6).parts(count)
  assert parts[0].first == .25 and parts[-1].last == pytest.approx(.5)
  for one, other in zip(parts, parts[1:]):
    assert one.last == pytest.approx(other.first)
    assert one.last - one.first == pytest.approx(.25 / count)
  assert {(part.begin, part.end) for part in parts} == {(.1, .6)}


@pytest.mark.parametrize('evaluations, progress, racers', [
    (800, .25, 2),
    (700, .25, 1),
    (700, .2, 2),
    (100, 1., 1),
    (0, 1., 1),
])
def test_what_prices_little_in_all_is_no_race(evaluations, progress, racers):
  assert races.racers(evaluations, progress) == racers


def _searches(monkeypatch, evaluations):
  """Those in order; `halfway` is the best of each when its part ended."""
  problem = problems.make(graphs.random_graph(2, 80), presets.preset('2xP100'))
  problem = dataclasses.replace(problem,
                                simulator=simulator.Simulator(problem.cluster))
  searches = []

  class Watched(prioritized.PrioritizedSearch):

    def __init__(self, *arguments):
      super().__init__(*arguments)
      self.halfway = self.best_key
      searches.append(self)

    def step(self, progress, count):
      super().step(progress, count)
      if progress < .5:
        self.halfway = self.best_key

  monkeypatch.setattr(prioritized, 'PrioritizedSearch', Watched)
  starts = np.ones((1, problem.graph.num_groups), np.int32)
  local_search.searched(problem, starts, np.random.default_rng(0),
                        limits.Limit(evaluations))
  return searches


@pytest.mark.parametrize('evaluations, racers', [(1600, 1), (3200, 2)])
def test_long_searches_in_order_race_and_the_best_goes_on(
    monkeypatch, evaluations, racers):
  searches = _searches(monkeypatch, evaluations)
  assert len(searches) == racers
  # A racer has an eighth of all, the best half of all besides.
  far = [search.evaluations > evaluations / 3 for search in searches]
  assert sum(far) <= 1
  best = min(search.halfway for search in searches)
  assert all(search.halfway == best for search, on in zip(searches, far) if on)
