import types

import numpy as np
import pytest

from placer_model.training.moves import move_report
from placer_model.training.moves import move_state
from placer_model.training.moves import move_trainer


def _entrant(policy_s, gdp_s=2.):
  state = move_state.MoveState(np.ones((1, 3), bool), 4)
  for device, (origin, seconds) in enumerate(
      (('draft', 4.), ('gdp', gdp_s), ('policy', policy_s))):
    state.record(np.array([[device]]), np.array([seconds]), origin, 1)
  state.gdp_s, state.seconds = 3., 10.
  baselines = tuple(
      types.SimpleNamespace(
          placer=name, evaluation=types.SimpleNamespace(step_time_s=seconds,
                                                        valid=valid))
      for name, seconds, valid in (('single_device', 8., True), ('metis', 3.,
                                                                 False)))
  return move_report.Entrant('', None, baselines,
                             types.SimpleNamespace(state=state))


def test_a_line_tells_how_far_the_best_is_ahead():
  report = move_trainer.Report(1, .0125, .5, 1., 9)
  assert move_report.line(
      _entrant(1.),
      report) == ('gain per price 0.0125  best 1000.000 ms  8.000x one device  '
                  '4.000x the start  2.000x gdp')


@pytest.mark.parametrize('policy_s, ahead', [(1., True), (2., False),
                                             (1.9995, False), (3., False)])
def test_verdict_says_whether_learning_is_worth_it(policy_s, ahead):
  entrant = _entrant(policy_s)
  assert move_report.is_ahead(entrant) == ahead
  said = move_report.verdict(entrant)
  assert said.startswith('Learning is ahead: gdp found 2000.000 ms in 3 s'
                         if ahead else 'Search is enough: ')
  assert 'in 7 s more' in said
