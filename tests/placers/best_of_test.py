import dataclasses
import sys

from absl import logging
import numpy as np
import pytest

from gdp_grappler import deadlines
from gdp_grappler import errors
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import best_of
from gdp_grappler.placers import registry
from helpers import clusters
from helpers import graphs
from helpers import problems

_CLUSTER = clusters.make_cluster(2, memory_bytes=1000)


class _Fixed:
  """Puts all ops on one device; without a device it raises an error."""

  def __init__(self, device):
    self._device = device

  def place(self, problem):
    if self._device is None:
      raise errors.GdpError('It cannot.')
    return placement_lib.from_groups(
        problem.graph, np.full(problem.graph.num_groups, self._device),
        problem.cluster)


@pytest.fixture(autouse=True)
def notices(monkeypatch):
  """The warnings. `random` puts all ops on CPU:0, `metis` on GPU:0."""
  best_of._notice.cache_clear()
  devices = {'random': 0, 'metis': 1, 'single_device': 2, 'gdp': None}
  monkeypatch.setattr(registry, 'create', lambda name: _Fixed(devices[name]))
  told = []
  monkeypatch.setattr(logging, 'warning',
                      lambda text, *args: told.append(text % args))
  return told


def _problem(seconds, workspace=0, **fields):
  return problems.make(graphs.chain(2, **fields), _CLUSTER, seconds, workspace)


def _winner(names, *costs):
  placer = best_of.BestOfPlacer(names)
  devices = placer.place(_problem(*costs)).devices.tolist()
  return placer.winner, devices


def test_the_cheapest_wins():
  names = ('random', 'metis', 'single_device')
  assert _winner(names, [[3, 1, 2]] * 2) == ('metis', [1, 1])
  assert _winner(names, [[3, 2, 1]] * 2) == ('single_device', [2, 2])


def test_of_equals_the_first_named_wins():
  assert _winner(('single_device', 'metis'), 1)[0] == 'single_device'
  assert _winner(('metis', 'single_device'), 1)[0] == 'metis'


def test_what_overflows_loses_to_what_fits():
  assert _winner(('random', 'metis'), [[9, 1, 1]] * 2,
                 [[0, 1001, 0]] * 2)[0] == 'random'


def test_of_what_overflows_the_least_wins():
  assert _winner(('random', 'metis'), [[9, 1, 1]] * 2,
                 [[1001, 1002, 0]] * 2)[0] == 'random'


def test_before_a_call_nobody_has_won():
  assert best_of.BestOfPlacer(('random', 'metis')).winner is None


def test_who_cannot_is_left_out_and_that_is_said_once(notices):
  placer = best_of.BestOfPlacer(('gdp', 'random'))
  for _ in range(2):
    placer.place(_problem(1))
  assert placer.winner == 'random'
  assert notices == ['The placer "gdp" is left out. It cannot.']


def test_notices_of_many_graphs_are_not_all_remembered(notices):
  """A process once kept the text of each notice in memory until its end."""
  for number in range(3 * best_of._MOST_NOTICES):
    best_of._notice('gdp', f'Graph {number} has no ops.')
  assert len(notices) == 3 * best_of._MOST_NOTICES
  assert best_of._notice.cache_info().currsize == best_of._MOST_NOTICES


def test_without_an_expert_nothing_is_missing(notices):
  placer = best_of.BestOfPlacer(('human_expert', 'random'))
  placer.place(_problem(1))
  assert placer.winner == 'random' and not notices


def test_nobody_is_asked_when_the_time_is_over_but_the_first_who_can():
  problem, late = _problem(1), deadlines.within(0.)
  proposed, skipped = best_of.propose_each(problem, ('gdp', 'random', 'metis'),
                                           late)
  assert list(proposed) == ['random']
  assert skipped == {
      'gdp': 'It cannot.', 'metis': 'The time budget was over before its turn.'
  }
  placer = best_of.BestOfPlacer(('gdp', 'random', 'metis', 'single_device'))
  placer.place(problem.until(late))
  assert placer.winner == 'single_device'  # It is the quickest.
  placer.place(problem.until(deadlines.within(1e6)))
  assert placer.winner == 'random'  # It is named first.


def test_each_has_what_is_left_of_the_time(monkeypatch):
  budgets = []
  stock = _Fixed.place
  monkeypatch.setattr(
      _Fixed, 'place', lambda self, problem:
      (budgets.append(problem.time_budget_s), stock(self, problem))[1])
  placer = best_of.BestOfPlacer(('random',))
  placer.place(_problem(1))
  placer.place(dataclasses.replace(_problem(1), time_budget_s=1e6))
  assert budgets[0] is None and 9e5 < budgets[1] <= 1e6


def test_if_nobody_can():
  placer = best_of.BestOfPlacer(('gdp',))
  with pytest.raises(errors.InfeasiblePlacementError,
                     match='None of the placers .*gdp: It cannot'):
    placer.place(_problem(1))


def test_a_graph_that_cannot_be_placed_is_refused_at_once():
  problem = _problem(1, pins=['GPU:9', ''], user_pins=[True, False])
  with pytest.raises(errors.InfeasiblePlacementError, match='GPU:9'):
    best_of.BestOfPlacer(('random',)).place(problem)


def test_unknown_names_and_none(monkeypatch):
  monkeypatch.undo()
  with pytest.raises(errors.GdpError, match='Did you mean "metis"'):
    best_of.BestOfPlacer(('random', 'metiss'))
  with pytest.raises(errors.GdpError, match='no placers'):
    best_of.BestOfPlacer(())


def test_defaults_are_in_the_registry():
  assert set(best_of.DEFAULT_NAMES) <= set(registry.names())
  assert set(best_of._QUICKEST_FIRST) == set(best_of.DEFAULT_NAMES)


def test_a_missing_library_is_said(monkeypatch, caplog):
  monkeypatch.undo()
  monkeypatch.setitem(sys.modules, 'pymetis', None)
  placer = best_of.BestOfPlacer(('metis', 'single_device'))
  placer.place(_problem(1))
  assert placer.winner == 'single_device'
  assert 'needs the package pymetis' in caplog.text


class _Several(_Fixed):

  def proposals(self, problem):
    return self.place(problem), _Fixed(2).place(problem)


def test_all_that_a_placer_says():
  problem = _problem(1.)
  assert len(best_of.proposals_of(_Fixed(1), problem)) == 1
  assert len(best_of.proposals_of(_Several(1), problem)) == 2


def test_placers_leave_time_to_those_that_follow(monkeypatch):
  budgets = []
  monkeypatch.setattr(
      _Fixed, 'place', lambda self, problem:
      (budgets.append(problem.time_budget_s),
       placement_lib.Placement(np.ones(2, np.int32), problem.cluster))[1])
  best_of.propose_each(_problem(1.), ['random', 'metis', 'single_device'],
                       deadlines.within(6., lambda: 0.), in_parts=True)
  assert budgets == [3., 3., 6.]


@pytest.mark.parametrize('answers', [True, False])
def test_placers_are_called_late_until_one_has_answered(answers):
  seen = []

  def on_proposals(name, proposed):
    seen.append((name, len(proposed)))
    return answers

  best_of.propose_each(_problem(1.), ['metis', 'random'],
                       deadlines.within(0., lambda: 0.), on_proposals)
  assert seen == [('metis', 1), ('random', 1)][:1 if answers else 2]
