import types

import numpy as np
import pytest

from gdp_grappler import deadlines
from gdp_grappler.problems import rewards
from helpers import clusters
from helpers import graphs
from helpers import problems
from placer_model.training import baselines
from placer_model.training import results
from placer_model.training.moves import move_report
from placer_model.training.moves import move_state
from placer_model.training.moves import move_trainer


def _entrant(policy_s, gdp_s=2., asked=True):
  state = move_state.MoveState(np.ones((1, 3), bool), 4)
  for device, (origin, seconds) in enumerate(
      (('draft', 4.), ('gdp', gdp_s), ('policy', policy_s))):
    state.record(np.array([[device]]), np.array([seconds]), origin, 1)
  state.gdp_s, state.seconds = 3., 10.
  state.by_gdp = np.ones((int(asked), 1), np.int32)
  baselines = tuple(
      types.SimpleNamespace(
          placer=name, evaluation=types.SimpleNamespace(step_time_s=seconds,
                                                        valid=valid))
      for name, seconds, valid in (('single_device', 8., True), ('metis', 3.,
                                                                 True)))
  return move_report.Entrant('', None, baselines,
                             types.SimpleNamespace(state=state))


def test_a_line_tells_how_far_the_best_is_ahead():
  """METIS' plain step was divided by a robust price."""
  report = move_trainer.Report(1, .0125, .5, 1., 9)
  assert move_report.line(_entrant(1.), report) == (
      'gain per price 0.0125  best price 1000.000 ms  8.000x one device  '
      '4.000x the start  2.000x gdp')


@pytest.mark.parametrize('policy_s, ahead', [(1., True), (2., False),
                                             (1.9995, False), (3., False)])
def test_verdict_says_whether_learning_is_worth_it(policy_s, ahead):
  entrant = _entrant(policy_s)
  assert move_report.is_ahead(entrant) == ahead
  said = move_report.verdict(entrant, searches=True)
  assert said.startswith(
      'Learning is ahead: gdp found a price of 2000.000 ms in'
      if ahead else 'Search is enough: ')
  assert 'in 7 s more' in said
  assert said.endswith('is searched.') != ahead


def test_verdict_promises_no_search_that_does_not_follow():
  """A run with measured steps said that the rest of its time is searched."""
  assert 'searched' not in move_report.verdict(_entrant(3.), searches=False)


def test_verdict_if_the_time_was_over_before_gdp():
  """The text was that search is enough: gdp found none in 0 s."""
  said = move_report.verdict(_entrant(np.inf, asked=False), searches=True)
  assert said == 'The time budget ended before gdp could search.'


def test_a_graph_without_a_placement_that_fits_has_an_entry():
  """A run of two graphs ended by a KeyError if one of them fits nowhere."""
  problem = problems.make(graphs.random_graph(3, 50),
                          clusters.make_cluster(2, memory_bytes=1))
  evaluator = problem.evaluator
  task = types.SimpleNamespace(graph=problem.graph, cluster=problem.cluster,
                               evaluator=evaluator, simulator=evaluator,
                               problem=problem)
  trainer = types.SimpleNamespace(
      state=move_state.MoveState(problem.allowed, 4))
  entrant = move_report.Entrant('a', task, (baselines.place(
      'single_device', problem, evaluator, evaluator),), trainer)
  record = move_report._record(types.SimpleNamespace(reward=rewards.SIMULATED),
                               entrant, 'said', deadlines.NEVER)
  own = record['placers'][results.TRAINED]
  assert not own['valid'] and own['found_by'] == ''
  assert record['verdict'].startswith('No placement that runs was found')
