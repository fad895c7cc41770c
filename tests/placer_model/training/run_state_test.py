import json

import numpy as np
import pytest

from gdp_grappler.evaluation import evaluator
from placer_model.training import environment
from placer_model.training import run_state


def _trials(*seconds, overflow=None):
  """One unit, whose device is the number of the trial."""
  count = len(seconds)
  peaks = np.zeros((count, 1), np.int64)
  if overflow is not None:
    peaks[overflow] = 2
  return environment.Trials(
      np.arange(count, dtype=np.int32)[:, None],
      evaluator.Prices.from_peaks(np.array(seconds), peaks, np.array([1])))


def test_the_best_trial_is_kept_with_its_origin():
  state = run_state.RunState()
  assert state.record(_trials(3., 2., 2.), 'policy', 3)
  assert state.best_decisions.tolist() == [1]
  assert (state.best_step_time_s, state.best_origin) == (2., 'policy')
  # As fast is not faster.
  assert not state.record(_trials(2.), 'search', 1)
  assert state.best_origin == 'policy'
  assert state.record(_trials(9., 1.), 'search', 1)
  assert (state.best_step_time_s, state.best_origin) == (1., 'search')
  assert state.curve == [(3, 2.), (5, 1.)]
  assert state.evaluations == {
      'baseline': 0, 'policy': 3, 'search': 2, 'greedy': 0
  }
  assert state.total_evaluations == 5


def test_the_best_of_the_policy_itself_is_kept():
  """The result of a run could not tell the policy from what it began with."""
  state = run_state.RunState()
  state.record(_trials(2.), 'baseline', 1)
  assert state.own_decisions is None
  assert not state.record(_trials(9., 5.), 'policy', 2)
  assert not state.record(_trials(4., 6., 7.), 'search', 3)
  assert state.own_decisions.tolist() == [1] and state.own_step_time_s == 5.
  assert not state.record(_trials(8., 7., 3.), 'greedy', 3)
  assert state.own_decisions.tolist() == [2] and state.own_step_time_s == 3.
  assert (state.best_step_time_s, state.best_origin) == (2., 'baseline')


def test_what_does_not_fit_is_not_the_best():
  state = run_state.RunState()
  assert not state.record(_trials(1., overflow=0), 'policy', 1)
  assert state.best_decisions is None and state.evaluations['policy'] == 1
  assert state.record(_trials(1., 5., overflow=0), 'policy', 2)
  assert state.best_step_time_s == 5.


def test_what_is_kept_is_a_copy():
  trials, state = _trials(1.), run_state.RunState()
  state.record(trials, 'policy', 1)
  trials.decisions[:] = 9
  assert state.best_decisions.tolist() == [0]


def test_a_checkpoint_is_the_state():
  state, other = run_state.RunState(), run_state.RunState()
  other.deserialize(state.serialize())
  assert vars(other) == vars(state)
  state.record(_trials(2., 1.), 'greedy', 2)
  state.iteration, state.reward_total = 7, -.5
  other.deserialize(state.serialize())
  for name in ('best_decisions', 'own_decisions'):
    decisions = other.__dict__.pop(name)
    np.testing.assert_array_equal(decisions, state.__dict__.pop(name))
    assert decisions.dtype == np.int32
  assert vars(other) == vars(state)


@pytest.mark.parametrize('origin, own, own_s', [('greedy', [[1]], 1.),
                                                ('search', [], np.inf)])
def test_the_checkpoint_of_an_earlier_version_is_read(origin, own, own_s):
  """The policy's own best was forgotten, also if it was the best of all."""
  fields = json.loads(_written(iteration=3, best_origin=origin))
  del fields['own_decisions'], fields['own_step_time_s']
  state = run_state.RunState()
  state.deserialize(json.dumps(fields))
  assert state.iteration == 3 and state.best_decisions.tolist() == [1]
  assert [d.tolist() for d in (state.own_decisions,) if d is not None] == own
  assert state.own_step_time_s == own_s


def _written(**changes):
  state = run_state.RunState()
  state.record(_trials(2., 1.), 'greedy', 2)
  return json.dumps(json.loads(state.serialize()) | changes)


@pytest.mark.parametrize('text', [
    '', '[]', '{}', '[' * 100_000,
    _written(other=1),
    *(_written(**{name: 'x'})
      for name in json.loads(run_state.RunState().serialize())),
    _written(iteration=-1),
    _written(iteration=True),
    _written(best_step_time_s=float('nan')),
    _written(best_origin=[]),
    _written(evaluations={}),
    _written(curve=[[1]]),
    _written(recent=[[[[0]]]]),
    _written(recent=[[[[0], [1]], [1.]]]),
    _written(recent=[[[[0], [1, 1]], [1., 2.]]]),
    _written(recent=[[[['0']], [1.]]]),
    _written(iteration=10**400)
])
def test_what_is_no_state_is_refused(text):
  state = run_state.RunState()
  before = dict(vars(state))
  with pytest.raises(ValueError):
    state.deserialize(text)
  assert vars(state) == before


@pytest.mark.parametrize('decisions', [[0], [0, 2], [0, 1 << 32], [1, 0]])
def test_a_best_placement_of_another_graph_is_refused(decisions):
  state = run_state.RunState(np.array([[True, False], [True, True]]))
  none = {'best_decisions': None, 'own_decisions': None}
  for changes in ({'best_decisions': decisions}, {'own_decisions': decisions},
                  {'recent': [[[decisions], [1.]]]}):
    with pytest.raises(ValueError, match='none of this graph'):
      state.deserialize(_written(**none | changes))
  state.deserialize(_written(**none | {'best_decisions': [0, 1]}))
  assert state.best_decisions.tolist() == [0, 1]


def test_a_checkpoint_has_the_latest_rollouts():
  state, other = run_state.RunState(), run_state.RunState()
  state.recent = [(np.array([[0, 1], [2, 0]], np.int32), np.array([-1., -.5]))]
  other.deserialize(state.serialize())
  (decisions, rewards), = other.recent
  assert decisions.dtype == np.int32
  assert decisions.tolist() == [[0, 1], [2, 0]
                               ] and rewards.tolist() == [-1, -.5]
