import json

import numpy as np
import pytest

from placer_model.training.moves import move_state

_ALLOWED = np.array([[True, True], [True, False], [True, True]])


def _state(most=2):
  state = move_state.MoveState(_ALLOWED, most)
  rows = np.array([[0, 0, 0], [1, 0, 1], [0, 0, 1], [1, 0, 0]], np.int32)
  state.record(rows[:3], np.array([3., np.inf, 2.]), move_state.DRAFT, 3)
  state.record(rows[[2, 3]], np.array([2., 1.]), move_state.POLICY, 5)
  state.drafts, state.by_gdp = rows[:2], rows[1:2]
  state.iteration, state.gains = 4, [.5, .25]
  return state


def test_the_best_that_fit_are_kept_the_best_first():
  state = _state()
  assert state.elites.tolist() == [[1, 0, 0], [0, 0, 1]]
  assert state.elite_s == [1., 2.]
  assert (state.best_step_time_s, state.best_origin) == (1., 'policy')
  assert state.best_s['draft'] == 2 and state.best_s['gdp'] == np.inf
  assert state.total_evaluations == 8
  assert state.curve == [(3, 2.), (8, 1.)]


def test_nothing_fits():
  state = move_state.MoveState(_ALLOWED, 2)
  state.record(np.zeros((1, 3), int), np.array([np.inf]), move_state.DRAFT, 1)
  assert state.best_decisions is None and state.best_origin == ''
  assert state.best_step_time_s == np.inf


def test_what_is_written_is_read():
  state, other = _state(), move_state.MoveState(_ALLOWED, 2)
  other.deserialize(state.serialize())
  assert other.serialize() == state.serialize()
  assert other.elites.tolist() == state.elites.tolist()
  assert other.best_s == state.best_s and other.curve == state.curve


def _changed(**changes):
  return json.dumps(json.loads(_state().serialize()) | changes)


_OTHER = move_state.MoveState(np.ones((2, 2), bool), 2)
_OTHER.drafts = np.array([[1, 1]], np.int32)
_FORBIDDEN = move_state.MoveState(np.ones((3, 2), bool), 2)
_FORBIDDEN.drafts = np.array([[1, 1, 1]], np.int32)


@pytest.mark.parametrize('text', [
    '', '[]', '{}',
    _changed(iteration=-1),
    _changed(evaluations={}),
    _changed(gains='x'),
    _changed(elite_s=[1.]),
    _changed(elite_origins=['x', 'x']),
    _changed(drafts=3),
    _changed(drafts='!'),
    _changed(drafts='eJw='),
    _OTHER.serialize(),
    _FORBIDDEN.serialize()
])  # yapf: disable
def test_what_nobody_wrote_is_refused(text):
  with pytest.raises(ValueError):
    _state().deserialize(text)
