"""What a train function says of itself; what it does is in `e2e`."""

import dataclasses
import types

import pytest
import tensorflow as tf

from gdp_grappler.plugin import outcome as outcome_lib
from gdp_grappler.plugin import settings as settings_lib
from gdp_grappler.plugin.fitting import phases
from gdp_grappler.plugin.fitting import plan as plan_lib
from gdp_grappler.plugin.fitting import single_steps
from gdp_grappler.plugin.fitting import train_function
from gdp_grappler.plugin.fitting import ways

_PLACED = outcome_lib.Outcome(('CPU:1',), 'step: 1 ops placed')


@pytest.fixture(name='said')
def _said(monkeypatch):
  lines = []
  monkeypatch.setattr(train_function.notices, 'say', lines.append)
  return lines


@pytest.fixture(name='function')
def _function():
  steps = single_steps.SingleSteps(types.SimpleNamespace(steps_per_execution=1))
  return train_function.TrainFunction(lambda step: step, 'fit of "model"',
                                      False, steps)


def _measured(function, before_s, placed_s):
  """The function at the end of its guard."""
  function._settings = settings_lib.Settings()
  plan = function._course.plan = plan_lib.FitPlan({'a': 'CPU:1'}, (), _PLACED)
  function._compare(plan)
  for seconds in (before_s, placed_s):
    function._course.timing._seconds = [seconds] * 5
    function._choose()


@pytest.mark.parametrize('before_s, placed_s, stays', [(1., 2., True),
                                                       (1., 1., True),
                                                       (2., 1., False)])
def test_the_faster_way_is_kept(function, said, before_s, placed_s, stays):
  _measured(function, before_s, placed_s)
  assert said == [
      f'fit of "model": {before_s * 1e3:.0f} ms as it was, '
      f'{placed_s * 1e3:.0f} ms placed (measured, medians of 5 and 5 calls): ' +
      ('goes back to what it was' if stays else 'stays placed')
  ]
  assert bool(function.report().placed_ops) != stays


def test_switched_on_again_it_says_that_it_was_measured(function, said):
  """Once it blamed a graph of fewer than 16 ops."""
  _measured(function, 1., 2.)
  function._explain()
  assert said[-1] == ('fit of "model": left as it was, which was measured to '
                      'be no slower than placed')


def test_each_option_has_a_plan_of_its_own(function):
  """Once the first one was forgotten for the second, and never made again."""
  first, second = settings_lib.Settings(), settings_lib.Settings(seed=1)
  function._switch(first)
  plan = plan_lib.FitPlan({}, (), outcome_lib.Outcome(None, 'no gain'))
  function._course.plan = plan
  function._switch(second)
  assert function._course.plan is None
  function._switch(None)
  function._switch(first)
  assert function._course.plan is plan


@pytest.fixture(name='compiled')
def _compiled():
  """Of a model that Keras has compiled by XLA."""
  steps = single_steps.SingleSteps(types.SimpleNamespace(steps_per_execution=1))
  function = train_function.TrainFunction(lambda step: ('xla', step),
                                          'fit of "model"', False, steps,
                                          lambda: lambda step: ('tf', step))
  function._switch(settings_lib.Settings())
  function._course.plan = plan_lib.FitPlan({'a': 'CPU:1'}, (), _PLACED)
  return function


def _time(function, *several_s):
  """What each of the ways ran, which took so long; the first is the first."""
  ran = []
  for seconds in several_s:
    ran.append(function._step('batch')[0])
    function._course.timing._seconds = [seconds] * 5
    function._choose()
  return ran


@pytest.mark.parametrize('xla_s, placed_s, plain_s, stays, runs', [
    (1., 2., 3., 'stays with XLA, as Keras chose', 'xla'),
    (2., 1., 3., 'stays placed', 'tf'),
    (3., 2., 1., 'stays without XLA', 'tf'),
])
def test_the_step_with_xla_is_what_others_have_to_beat(compiled, said, xla_s,
                                                       placed_s, plain_s, stays,
                                                       runs):
  compiled._compare(compiled._course.plan)
  assert _time(compiled, xla_s, placed_s, plain_s) == ['xla', 'tf', 'tf']
  assert compiled._step('batch') == (runs, 'batch')
  assert compiled.is_placed == (stays == 'stays placed')
  line, = said
  assert f': {stays}. Steps ran in these ways in turn' in line
  assert compiled.report().before_s == xla_s


def test_a_pin_holds_without_a_comparison(compiled):
  """The guard went back to steps in which an op was not at its pin."""
  outcome = dataclasses.replace(_PLACED, before_s=float('inf'))
  compiled._course.plan = plan_lib.FitPlan({'a': 'CPU:1'}, (), outcome)
  compiled._planning_step('batch')
  assert compiled.report().way == 'placed'
  assert compiled._course.comparison is None


@pytest.mark.parametrize('fitted, way', [(False, 'placed'), (True, 'with XLA')])
@pytest.mark.parametrize('has_streams', [False, True])
def test_a_step_that_would_not_fit_is_placed_at_once(compiled, said, fitted,
                                                     has_streams, way):
  """Once XLA stayed, and the line blamed streams of random numbers."""
  outcome = dataclasses.replace(_PLACED, fitted=fitted)
  plan = plan_lib.FitPlan({'a': 'CPU:1'}, (), outcome, has_streams=has_streams)
  compiled._course.plan = plan
  line = train_function.course_lib.of_kept_xla(plan, 'fit',
                                               compiled._is_certain(plan))
  compiled._planning_step('batch')
  assert compiled.report().way == way
  assert ('draws random numbers' in line) == fitted
  is_timed = compiled._course.comparison is not None
  assert is_timed == (fitted and not has_streams)


def test_steps_without_xla_stay_so_if_variables_cannot_move(
    compiled, said, monkeypatch):
  """XLA compiled them in spite of 'xla': 'off'."""

  def refuse(moves):
    if list(moves):
      raise train_function.errors.PluginError('No room.')

  monkeypatch.setattr(train_function.variable_moves, 'move', refuse)
  monkeypatch.setattr(train_function.notices, 'warn_once', said.append)
  compiled._switch(settings_lib.Settings(xla='off'))
  moves = ((types.SimpleNamespace(device='CPU:0'), 'CPU:1'),)
  compiled._course.plan = plan_lib.FitPlan({'a': 'CPU:1'}, moves, _PLACED)
  compiled._enter(ways.FitWay.PLACED)
  assert 'cannot be moved: No room.' in said[-1]
  assert compiled._step('batch') == ('tf', 'batch')


def test_what_the_user_has_relocated_does_not_move_back(function, monkeypatch):
  """Switching the option off took the call of `relocate` back."""
  moved = []
  monkeypatch.setattr(train_function.variable_moves, 'move', moved.extend)
  variables = [
      types.SimpleNamespace(device=device) for device in ('CPU:1', 'CPU:2')
  ]
  moves = tuple((variable, 'CPU:1') for variable in variables)
  function._course.plan = plan_lib.FitPlan({'a': 'CPU:1'}, moves, _PLACED)
  function._origins = tuple((variable, 'CPU:0') for variable in variables)
  function._switch(None)
  assert moved == [(variables[0], 'CPU:0')]


@pytest.fixture(name='looped')
def _looped():
  """Of a model whose steps Keras puts into a loop."""
  model = types.SimpleNamespace(steps_per_execution=3)
  function = train_function.TrainFunction(lambda iterator: iterator,
                                          'fit of "model"', False,
                                          single_steps.SingleSteps(model))
  function._settings = settings_lib.Settings()
  function._has_loop = True
  return function


def test_steps_that_the_pass_never_sees_return_to_their_loop(looped):
  """They ran one by one for good."""
  iterator = iter(tf.data.Dataset.range(4))
  looped._phase = phases.Phase.PLANNING
  assert looped._step(iterator) is not iterator
  assert looped._step(iterator) is iterator


def test_a_method_of_one_step_says_that_fit_plans(looped, said):
  """Its line blamed a small graph."""
  looped._phase = phases.Phase.LOOKING
  looped._step(iter([1]))
  looped._explain()
  assert 'only fit searches for a placement' in said[0]


def test_a_kept_xla_runs_what_keras_made(compiled):
  compiled._switch(settings_lib.Settings(xla='keep'))
  assert compiled._step('batch') == ('xla', 'batch')
  assert compiled.report().way == 'with XLA'


def test_switched_off_between_two_ways_it_goes_on_where_it_was(compiled):
  compiled._compare(compiled._course.plan)
  _time(compiled, 1.)
  assert compiled.is_placed
  compiled._switch(None)
  assert not compiled.is_placed
  compiled._switch(settings_lib.Settings())
  assert compiled.is_placed and compiled._phase is phases.Phase.TIMING


def test_another_function_of_the_model_takes_over_the_way(compiled, said):
  compiled._compare(compiled._course.plan)
  _time(compiled, 1., 2., 3.)
  other = train_function.TrainFunction(lambda step: ('new xla', step),
                                       'fit of "model"', False, compiled._steps,
                                       lambda: lambda step: ('new tf', step))
  other.take_over(compiled)
  assert other._step('batch') == ('new xla', 'batch')
  assert len(said) == 1


def test_variables_that_cannot_be_moved_leave_xla_there(compiled, said,
                                                        monkeypatch):

  def refuse(moves):
    if moves:
      raise train_function.errors.PluginError('No room.')

  monkeypatch.setattr(train_function.variable_moves, 'move', refuse)
  monkeypatch.setattr(train_function.notices, 'warn_once', said.append)
  variable = types.SimpleNamespace(device='CPU:0')
  compiled._course.plan = plan_lib.FitPlan({'a': 'CPU:1'},
                                           ((variable, 'CPU:1'),), _PLACED)
  monkeypatch.setattr(compiled, '_undo',
                      lambda: setattr(compiled, 'is_placed', False))
  compiled._compare(compiled._course.plan)
  _time(compiled, 1.)
  assert compiled._step('batch') == ('xla', 'batch')
  assert compiled._course.stays and not compiled.is_placed
  assert 'cannot be moved: No room.' in said[-1]
